"""The public names of `statetrack.pictures`: other packages import these, from here alone."""

from .learned_map import draw_learned as draw_learned
from .looks import MANNERS as MANNERS
from .looks import Look as Look
from .looks import check_path as check_path
from .looks import width_of as width_of
from .report_figures import draw_evidence as draw_evidence
from .report_figures import draw_report as draw_report
from .report_figures import usual_kind as usual_kind
from .sketch import Choice as Choice
from .tasks import draw_task as draw_task
