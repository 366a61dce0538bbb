"""The public names of statetrack."""

from .algebra.analysing import Algebra as Algebra
from .algebra.analysing import analyse as analyse
from .algebra.prediction import Prediction as Prediction
from .data import stream as stream
from .errors import StatetrackError as StatetrackError
from .evaluation import evaluate as evaluate
from .evidence.bracket import Bracket as Bracket
from .evidence.certifying import certify as certify
from .evidence.extraction import Extracted as Extracted
from .evidence.extraction import extract as extract
from .evidence.probing import Probe as Probe
from .evidence.probing import probe as probe
from .evidence.worst_words import stress as stress
from .models import MODELS as MODELS
from .models._base import LinearModel as LinearModel
from .models._base import RecurrentModel as RecurrentModel
from .models._base import SequenceModel as SequenceModel
from .models._checking import Finding as Finding
from .models._checking import check_model as check_model
from .models._making import make_model as make_model
from .models._settings import LinearSettings as LinearSettings
from .models._settings import ModelSettings as ModelSettings
from .plugins import load_plugin as load_plugin
from .predicting import predict as predict
from .runs.config import Experiment as Experiment
from .runs.rows import Evaluation as Evaluation
from .runs.rows import EvaluationRow as EvaluationRow
from .runs.rows import Outcome as Outcome
from .runs.rows import Summary as Summary
from .runs.run import Run as Run
from .scoring import Score as Score
from .settings import Settings as Settings
from .settings import option as option
from .sources import KINDS as KINDS
from .sources import Automaton as Automaton
from .sources import Batch as Batch
from .sources import Source as Source
from .spec import TASKS as TASKS
from .spec import Task as Task
from .spec import load_task as load_task
from .training.records import Record as Record
from .training.registries import LOSSES as LOSSES
from .training.registries import OPTIMISERS as OPTIMISERS
from .training.train import train as train

__version__: str
