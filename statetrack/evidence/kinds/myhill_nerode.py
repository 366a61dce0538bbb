"""Myhill-Nerode scores: whether a network keeps apart what the task does, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass

from statetrack.evidence.records import EVIDENCE, Evidence, Facts, Named
from statetrack.scoring import rounded_down


@dataclass(frozen=True, kw_only=True)
class NerodeScores:
    """Compression precision, distinction precision and distinction recall, each from 0 to 1.

    None where there is no pair of words to measure it on.
    """

    compression_precision: float | None
    distinction_precision: float | None
    distinction_recall: float | None

    def __str__(self) -> str:
        names = ("compression precision", "distinction precision", "recall")
        values = (self.compression_precision, self.distinction_precision, self.distinction_recall)
        pairs = zip(names, values, strict=True)
        return ", ".join(f"{name} {'-' if v is None else rounded_down(v)}" for name, v in pairs)


@EVIDENCE.register("myhill-nerode")
@dataclass(frozen=True, kw_only=True)
class MyhillNerode(Evidence):
    """Whether a network keeps apart, and does not, the words that the task does (`nerode_scores`).

    `exact` is over all pairs of the `prefixes` words of up to `prefix_length` symbols that the task
    draws (the empty one included), which reach `reached` of the `states` of its smallest machine,
    and over all `suffixes` words of 1 to `suffix_length` symbols behind them. `tells_apart` says
    whether these suffixes tell apart every two states that any suffix does. `sampled` is over
    `sampled_prefixes` random words of up to `sampled_length` symbols, and `sampled_suffixes` random
    suffixes.
    """

    kind = "myhill-nerode"
    commands = ("probe", "extract")
    place = 6.0
    share = 0.3
    found_by = "statetrack.evidence.nerode_scores:find_myhill_nerode"

    exact: NerodeScores
    sampled: NerodeScores
    states: int
    reached: int
    prefixes: int
    prefix_length: int
    suffixes: int
    suffix_length: int
    tells_apart: bool
    sampled_prefixes: int
    sampled_length: int
    sampled_suffixes: int

    def lines(self, names: Named) -> list[Facts]:
        """Compression and distinction: on all short words, and on random ones."""
        if not self.prefixes:
            return [Facts([("keeps apart", "not measured: the budget was spent")])]
        told = "" if self.tells_apart else ", which do not tell all states apart"
        where = (
            f"on all {self.prefixes:,} words of up to {self.prefix_length} symbols, with all "
            f"suffixes of up to {self.suffix_length}{told}"
        )
        if self.reached < self.states:
            where += f"; they reach {self.reached} of {self.states} states"
        facts = [("keeps apart", f"{self.exact}, {where}")]
        if self.sampled_prefixes:
            number, length = self.sampled_prefixes, self.sampled_length
            sampled = f"on {number:,} random words of up to {length:,} symbols"
            facts.append(("", f"{self.sampled}, {sampled}"))
        return [Facts(facts)]
