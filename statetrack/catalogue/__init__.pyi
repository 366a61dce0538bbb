"""The public names of `statetrack.catalogue`: other packages import these, from here alone."""

from .installation import describe_installation as describe_installation
from .lists import ALGEBRA as ALGEBRA
from .lists import LISTINGS as LISTINGS
from .lists import RUN_FOLDERS as RUN_FOLDERS
from .lists import Listing as Listing
from .lists import Row as Row
from .models import about_kernels as about_kernels
from .models import describe_model as describe_model
from .models import model_sources as model_sources
from .options import as_text as as_text
from .options import bounds as bounds
from .options import flag as flag
from .options import inner_type as inner_type
from .options import names_for as names_for
from .options import type_name as type_name
from .options import type_of as type_of
from .runs import describe_run as describe_run
from .tasks import describe_algebra as describe_algebra
from .tasks import describe_kind as describe_kind
from .tasks import describe_task as describe_task
from .tasks import load_named_task as load_named_task
