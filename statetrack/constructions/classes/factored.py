"""A sum of terms of rank one for every symbol, which symbols share, with gains of their own."""

from __future__ import annotations

from typing import Any

from statetrack.algebra import Factored
from statetrack.constructions.case import Case
from statetrack.constructions.integers import as_large_as, fewest_integer_terms
from statetrack.constructions.registry import construction, take
from statetrack.constructions.representations import fewest_terms


@construction(
    Factored,
    name="terms",
    equation="h_t = sum_k g_k(x_t) a_k b_k^T h_{t-1}, the matrices of a representation as sums of "
    "K terms that span them",
    source="arXiv:2505.21749",
    integers=True,
)
def terms(case: Case) -> Any:
    """The representation with the fewest known terms."""
    if case.integers:
        found, sums = fewest_integer_terms(case.algebra)
        case = as_large_as(case, case.prediction.needs[0].setting, sums.rank)
        return take(case, "terms", found, sums)
    return take(case, "terms", *fewest_terms(case.algebra))
