"""The public names of `statetrack.audit`: other packages import these, from here alone."""

from .answers import SplitScore as SplitScore
from .answers import score as score
from .auditing import CLEARLY as CLEARLY
from .auditing import HELD_OUT as HELD_OUT
from .auditing import MOST_SYMBOLS as MOST_SYMBOLS
from .auditing import SOLVED as SOLVED
from .auditing import Audit as Audit
from .auditing import LengthFacts as LengthFacts
from .auditing import Part as Part
from .auditing import SplitAudit as SplitAudit
from .auditing import audit as audit
from .auditing import best_by_length as best_by_length
from .auditing import draw_held_out as draw_held_out
from .auditing import draw_tests as draw_tests
from .auditing import draw_train as draw_train
from .shortcuts import LONGEST_LOOKUP as LONGEST_LOOKUP
from .shortcuts import VIEWS as VIEWS
from .shortcuts import Shortcuts as Shortcuts
