"""The public names of `statetrack.atlas`: other packages import these, from here alone."""

from .files import MachineFile as MachineFile
from .files import machine_files as machine_files
from .rows import AnswerRow as AnswerRow
from .rows import GroupRow as GroupRow
from .rows import MachineRow as MachineRow
from .rows import MergingRow as MergingRow
from .surveying import Models as Models
from .training import KINDS as KINDS
from .training import RIGHT as RIGHT
from .training import TrainedRow as TrainedRow
from .training import trained_rows as trained_rows
from .training import training_suite as training_suite
from .working import Limits as Limits
from .working import survey_all as survey_all
