"""The public names of `statetrack.constructions`: other packages import these, from here alone."""

from .building import Built as Built
from .building import build as build
from .building import build_case as build_case
from .case import BeyondBudget as BeyondBudget
from .case import Case as Case
from .case import NotBuilt as NotBuilt
from .covering import RANDOM as RANDOM
from .covering import allowed_words as allowed_words
from .covering import covering_words as covering_words
from .following import Followed as Followed
from .following import follow_words as follow_words
from .following import leads_of as leads_of
from .integers import integer_readout as integer_readout
from .integers import integer_representations as integer_representations
from .integers import integer_terms as integer_terms
from .layers._linear import put_table as put_table
from .readouts import separate as separate
from .registry import Construction as Construction
from .registry import construction as construction
from .registry import register_layer as register_layer
from .registry import take as take
from .representations import LinearRepresentation as LinearRepresentation
from .spanning_terms import gains_of as gains_of
from .spanning_terms import spanning_terms as spanning_terms
from .stacks import Layer as Layer
from .weights import put as put
