"""Words with their labels: drawn for training, streamed for evaluation."""

from statetrack.data.batch import PADDING, Batch, Supervision, label
from statetrack.data.lengths import LengthDistribution, parse_lengths
from statetrack.data.words import BatchStream, WordStream, stream_words

__all__ = [
    "PADDING",
    "Batch",
    "BatchStream",
    "LengthDistribution",
    "Supervision",
    "WordStream",
    "label",
    "parse_lengths",
    "stream_words",
]
