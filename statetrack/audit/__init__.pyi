"""The public names of `statetrack.audit`: other packages import these, from here alone."""

from .audits import CLEARLY as CLEARLY
from .audits import HELD_OUT as HELD_OUT
from .audits import MOST_SYMBOLS as MOST_SYMBOLS
from .audits import SOLVED as SOLVED
from .audits import Audit as Audit
from .audits import AuditedWords as AuditedWords
from .audits import LengthFacts as LengthFacts
from .audits import SplitAudit as SplitAudit
from .audits import SplitScore as SplitScore
from .audits import audit as audit
from .audits import best_by_length as best_by_length
from .audits import draw_held_out as draw_held_out
from .audits import draw_tests as draw_tests
from .audits import draw_train as draw_train
from .audits import score as score
from .shortcuts import LONGEST_LOOKUP as LONGEST_LOOKUP
from .shortcuts import VIEWS as VIEWS
from .shortcuts import Shortcuts as Shortcuts
