"""Words with their labels: drawn for training, streamed for evaluation, written to folders."""

from statetrack.data.datasets import (
    Dataset,
    check_labels,
    read_dataset,
    write_dataset,
    write_large_dataset,
)
from statetrack.data.distinct import draw_distinct
from statetrack.data.fixed import FixedWords, fixed_words
from statetrack.data.formats import FORMATS, FormatName
from statetrack.data.formats.word_problem import read_word_problem, write_word_problem
from statetrack.data.large import Request
from statetrack.data.sizes import Size, estimate_size, in_bytes
from statetrack.data.splits import Splits, draw_splits, name_of_test
from statetrack.data.streams import TensorStream, stream
from statetrack.data.texts import TextForm, TextRequest
from statetrack.data.words import BatchStream, measured_floors, stream_words, whole_words
from statetrack.sources import (
    PADDING,
    Batch,
    LengthDistribution,
    Supervision,
    WordStream,
    parse_lengths,
)

__all__ = [
    "FORMATS",
    "PADDING",
    "Batch",
    "BatchStream",
    "Dataset",
    "FixedWords",
    "FormatName",
    "LengthDistribution",
    "Request",
    "Size",
    "Splits",
    "Supervision",
    "TensorStream",
    "TextForm",
    "TextRequest",
    "WordStream",
    "check_labels",
    "draw_distinct",
    "draw_splits",
    "estimate_size",
    "fixed_words",
    "in_bytes",
    "measured_floors",
    "name_of_test",
    "parse_lengths",
    "read_dataset",
    "read_word_problem",
    "stream",
    "stream_words",
    "whole_words",
    "write_dataset",
    "write_large_dataset",
    "write_word_problem",
]
