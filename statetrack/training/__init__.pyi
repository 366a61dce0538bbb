"""The public names of `statetrack.training`: other packages import these, from here alone."""

from .api import check_logits as check_logits
from .api import train as train
from .losses import accuracy as accuracy
from .losses import finite_answers as finite_answers
from .losses import words_right as words_right
from .optimisers import OptimiserKind as OptimiserKind
from .population import Population as Population
from .population import schedule_factor as schedule_factor
from .records import Finish as Finish
from .records import Progress as Progress
from .records import Record as Record
from .records import Replica as Replica
from .records import replicas_of as replicas_of
from .settings import LOSSES as LOSSES
from .settings import OPTIMISERS as OPTIMISERS
from .settings import PROTOCOLS as PROTOCOLS
from .settings import DataSettings as DataSettings
from .settings import Protocol as Protocol
from .settings import TrainSettings as TrainSettings
from .settings import read_protocol as read_protocol
from .settings import settings_for as settings_for
from .trainer import BLOCK as BLOCK
from .trainer import Trainer as Trainer
from .words import SeedStreams as SeedStreams
from .words import TaskWords as TaskWords
from .words import Words as Words
