"""The public names of `statetrack.spec`: other packages import these, from here alone."""

from .lengths import Lengths as Lengths
from .loading import TASKS as TASKS
from .loading import list_tasks as list_tasks
from .loading import load_task as load_task
from .loading import task_names as task_names
from .names import arguments as arguments
from .names import base_and_arguments as base_and_arguments
from .names import current_name as current_name
from .names import folder_name as folder_name
from .names import group_meant as group_meant
from .names import is_path as is_path
from .names import names_in as names_in
from .names import own_kind as own_kind
from .names import split_at_commas as split_at_commas
from .task import Task as Task
from .task import TaskSpec as TaskSpec
from .task import WordSpec as WordSpec
from .task import arguments_that_can_be_set as arguments_that_can_be_set
from .task import golden_hash as golden_hash
from .words import OWN as OWN
from .words import check_words as check_words
from .words import file_in as file_in
