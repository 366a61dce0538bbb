"""Compiled loops for the CPU in place of torch's operations, by numba, where they can run.

A scan in torch launches hundreds of small operations per word, and each passes over memory. A loop
is one call: it holds a state in the fastest memory, and its backward pass computes the states of a
chunk anew from the one before the chunk. Without gradients nothing is kept, so memory does not
grow with the number of positions. The loops have one thread.

Each function here has the arguments of the function of the same name in `statetrack.ops`, and
computes the same to rounding, in float32 or float64. Second derivatives are not supported.
"""

from statetrack.ops.native.activations import activated_linear as activated_linear
from statetrack.ops.native.activations import hyperbolic_tangent as hyperbolic_tangent
from statetrack.ops.native.activations import log_decays as log_decays
from statetrack.ops.native.attention import additive_attention as additive_attention
from statetrack.ops.native.attention import attention_before as attention_before
from statetrack.ops.native.attention import decayed_attention as decayed_attention
from statetrack.ops.native.attention import gated_attention as gated_attention
from statetrack.ops.native.attention import replacing_attention as replacing_attention
from statetrack.ops.native.block_diagonal import block_diagonal as block_diagonal
from statetrack.ops.native.by_symbol import read_by_angles as read_by_angles
from statetrack.ops.native.by_symbol import read_by_blocks as read_by_blocks
from statetrack.ops.native.by_symbol import read_by_factors as read_by_factors
from statetrack.ops.native.by_symbol import read_by_gains as read_by_gains
from statetrack.ops.native.by_symbol import read_by_matrices as read_by_matrices
from statetrack.ops.native.calls import why_not as why_not
from statetrack.ops.native.convolution import convolution as convolution
from statetrack.ops.native.delta_rule import delta_rule as delta_rule
from statetrack.ops.native.diagonal import gated_diagonal as gated_diagonal
from statetrack.ops.native.diagonal import turning_diagonal as turning_diagonal
from statetrack.ops.native.gated_projections import gated_projections as gated_projections
from statetrack.ops.native.gates import gated as gated
from statetrack.ops.native.linear import LEAST_ROWS as LEAST_ROWS
from statetrack.ops.native.linear import linear as linear
from statetrack.ops.native.linear import linear_beside as linear_beside
from statetrack.ops.native.matrix_network import matrix_network as matrix_network
from statetrack.ops.native.matrix_states import reads_whole_words as reads_whole_words
from statetrack.ops.native.matrix_states import whole_words as whole_words
from statetrack.ops.native.mixtures import mixed as mixed
from statetrack.ops.native.mlp import Unit as Unit
from statetrack.ops.native.mlp import mlp as mlp
from statetrack.ops.native.normaliser import divided as divided
from statetrack.ops.native.norms import normalised as normalised
from statetrack.ops.native.norms import normalised_beside as normalised_beside
from statetrack.ops.native.norms import unit_parts as unit_parts
from statetrack.ops.native.rotations import rotated as rotated
from statetrack.ops.native.rows_of_symbols import rows_at as rows_at
from statetrack.ops.native.rows_of_symbols import rows_at_each as rows_at_each
from statetrack.ops.native.rwkv_outputs import gated_heads as gated_heads
from statetrack.ops.native.rwkv_terms import removing_terms as removing_terms
from statetrack.ops.native.saturating import gated_network as gated_network
from statetrack.ops.native.saturating import second_order_network as second_order_network
from statetrack.ops.native.scalar_lstm import scalar_lstm as scalar_lstm
from statetrack.ops.native.scores import answers as answers
from statetrack.ops.native.scores import cross_entropy as cross_entropy
from statetrack.ops.native.scores import squared_error as squared_error
from statetrack.ops.native.selective_diagonal import selective_diagonal as selective_diagonal
from statetrack.ops.native.softmax_attention import LONGEST_ATTENDED as LONGEST_ATTENDED
from statetrack.ops.native.softmax_attention import softmax_attention as softmax_attention
from statetrack.ops.native.symbol_pairs import at_pairs as at_pairs
from statetrack.ops.native.wkv import weighted_averages as weighted_averages
