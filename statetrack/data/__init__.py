"""Words with their labels: drawn for training, streamed for evaluation, written to folders."""

from statetrack.data.batch import PADDING, Batch, Supervision, label
from statetrack.data.distinct import count_words, draw_distinct, list_words
from statetrack.data.fixed import FixedWords, fixed_words
from statetrack.data.lengths import LengthDistribution, parse_lengths
from statetrack.data.words import BatchStream, WordStream, stream_words

__all__ = [
    "PADDING",
    "Batch",
    "BatchStream",
    "FixedWords",
    "LengthDistribution",
    "Supervision",
    "WordStream",
    "count_words",
    "draw_distinct",
    "fixed_words",
    "label",
    "list_words",
    "parse_lengths",
    "stream_words",
]
