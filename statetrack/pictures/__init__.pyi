"""The public names of `statetrack.pictures`: other packages import these, from here alone."""

from ._chosen import Choice as Choice
from ._manners import MANNERS as MANNERS
from ._manners import Manner as Manner
from .looks import Look as Look
from .looks import width_of as width_of
from .pictures import draw_task as draw_task
from .report_figures import draw_report as draw_report
from .report_figures import usual_kind as usual_kind
from .saving import check_path as check_path
from .saving import draw_evidence as draw_evidence
