"""What is found about a trained model, as typed values that a run's folder keeps.

Every class is one kind of evidence; its fields are plain values, so that it can be written as JSON
and read again without torch. Positions count from 1: the position of the first symbol is 1.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar, Literal


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """One kind of evidence about one trained model; `kind` is its name in evidence.jsonl.

    It is `complete` unless the time of the search was spent before its end.
    """

    kind: ClassVar[str]
    complete: bool
    seconds: float

    @property
    def failures(self) -> tuple[Failure, ...]:
        """The words in it that are answered wrongly."""
        values = (getattr(self, each.name) for each in fields(self))
        return tuple(value for value in values if isinstance(value, Failure))


@dataclass(frozen=True)
class Failure:
    """A word that a model answers wrongly: `prefix`, then `period` again and again.

    `position` is that of the first wrong answer, after which the word may end; there the task asks
    for `label` and the model gives `answer` (None where its logits are not all finite). A `suffix`
    takes the place of the last symbols up to `position`.
    """

    prefix: tuple[int, ...]
    period: tuple[int, ...]
    position: int
    label: int
    answer: int | None
    suffix: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not 1 <= self.position or not (self.period or self.position <= len(self.prefix)):
            raise ValueError(f"'position': the word has no symbol {self.position}")

    @property
    def word(self) -> tuple[int, ...]:
        """The symbols up to the wrong answer."""
        length = self.position - len(self.suffix)
        missing = length - len(self.prefix)
        repeats = -(-missing // len(self.period)) if missing > 0 else 0
        return (self.prefix + self.period * repeats)[:length] + self.suffix


# --- certificate ---

Verdict = Literal["all lengths", "to length", "not proven"]
"""What is proven of all words: of every length, of those up to a length, or nothing."""


@dataclass(frozen=True, kw_only=True)
class Certificate(Evidence):
    """What is proven about the answers to all words that can be drawn, wherever one is asked for.

    `verdict` is about the model as it runs in its own floating-point type, with every rounding
    counted, and `verdict_real` about the same weights in exact arithmetic. Words are proven up to
    `length` (`length_real`) symbols where the verdict is "to length", else it is None. No word is
    proven to be answered wrongly: what is not proven may still hold.
    """

    kind: ClassVar[str] = "certificate"
    verdict: Verdict
    length: int | None
    verdict_real: Verdict
    length_real: int | None
    method: str
    """What the proof rests on, in a few words."""
    margin: float | None
    """The smallest distance between the logits of a right and a wrong label that is proven at the
    beginning, as a share of the largest logit difference between any two states; None without."""
    residual: float | None
    """How far one step may lead off the centres or regions of the states, at most, relative to
    their size; None where the method knows no such number."""
    growth: float | None
    """The factor by which one step may multiply a distance, at most; None without such a number."""
    reason: str
    """What ends the proof, in plain terms; empty where nothing does."""
    complete: bool
    seconds: float


def not_proven(
    reason: str, *, method: str = "none", complete: bool = True, seconds: float = 0.0
) -> Certificate:
    """A certificate of nothing, and why."""
    return Certificate(
        verdict="not proven",
        length=None,
        verdict_real="not proven",
        length_real=None,
        method=method,
        margin=None,
        residual=None,
        growth=None,
        reason=reason,
        complete=complete,
        seconds=seconds,
    )


# --- exhaustive ---


@dataclass(frozen=True, kw_only=True)
class Exhaustive(Evidence):
    """All words up to some length, through the tree of the states that a model can reach.

    Every word of at most `length` symbols is answered rightly, of those that the task draws where
    it forbids symbols (`forbids`); these are `words` in number, None where they are too many to
    count. `failure` is the shortest word with a wrong answer, the first of these in the order of
    the symbols. `states` different states were met, of the model and the automaton together; two
    are one where the automaton's are equal and no number of the model's differs, or, with a
    `tolerance`, where the model's are at most so far apart, as a share of their size.

    `closed` says that no word leads out of these states. With tolerance 0 that proves that words of
    every length are answered rightly, in the arithmetic of this model reading one word at a time,
    symbol by symbol, on this machine. With a tolerance it is a heuristic that may miss wrong words,
    and proves nothing. `reason` is what ended the search: see `ENDINGS`.
    """

    kind: ClassVar[str] = "exhaustive"

    length: int
    words: int | None
    forbids: bool
    closed: bool
    states: int
    tolerance: float
    failure: Failure | None
    reason: str
    complete: bool
    seconds: float

    @property
    def verdict(self) -> str:
        """What was found, in a few words."""
        if self.failure is not None:
            return f"fails at length {self.failure.position}"
        if self.closed:
            return "closed" if self.tolerance == 0 else "closed within tolerance"
        return f"right to length {self.length}"


ENDINGS: dict[str, str] = {
    "failure": "a word is answered wrongly",
    "closed": "no word leads to a state that was not met",
    "alone": "closed, but not confirmed for words that are read one at a time",
    "length": "the greatest length was reached",
    "states": "the most states were met, or as many of one length as there is memory for",
    "time": "the time was spent",
}
"""What ends an exhaustive search: `Exhaustive.reason`, and what it says."""


# --- error control ---


@dataclass(frozen=True, kw_only=True)
class Spread:
    """How far hidden states of one automaton state are apart at one position of random words.

    `spread` R is the root mean square distance of hidden states from the mean of their automaton
    state's at this position; `separation` M the smallest distance of two such means; `ratio` is
    R / M. The same in the projection that the decoder sees, the logits less their mean, with M over
    pairs of states of different labels (`output_...`). `displacement` is the root mean square
    distance there from the *reference* means, those at `ErrorControl.reference`, over their M: it
    also sees what moves all hidden states of one automaton state alike. None where fewer than two
    states, or none twice, were met. `wrong` is the share of wrong answers.
    """

    position: int
    spread: float | None
    separation: float | None
    ratio: float | None
    output_ratio: float | None
    displacement: float | None
    wrong: float


@dataclass(frozen=True, kw_only=True)
class NoiseRow:
    """Words read with Gaussian noise on all numbers of the state after every symbol.

    `size` is the expected length of what is added to a word's state, as a part of the state's.
    `first_error` is the position of the first wrong answer to any word, None where `length` symbols
    brought none. `predicted` is the position where three standard deviations of it reach the
    margin, if operators keep lengths; None where there is no margin.
    """

    size: float
    words: int
    length: int
    first_error: int | None
    predicted: float | None


@dataclass(frozen=True, kw_only=True)
class PrecisionRow:
    """The same words read in one precision: weights, states and arithmetic.

    In bfloat16 the weights are rounded to it, and the state after every symbol, with arithmetic in
    float32 in between.

    `first_difference` is the first position where an answer is not that of float64, `first_wrong`
    the first where it is wrong; None where `length` symbols brought none. `reason` is why the type
    cannot be used, or empty.
    """

    precision: str
    words: int
    length: int
    first_difference: int | None
    first_wrong: int | None
    reason: str


@dataclass(frozen=True, kw_only=True)
class ErrorControl(Evidence):
    """How errors of the state grow with length, and where the decoder fails by them.

    After Chung, Choi and Kim (2026, arXiv:2605.07755), whose R and M the source leaves open: here
    they are those of `Spread`. Hidden states are divided by their length first, and logits by
    theirs, where answers do not depend on it.

    `threshold` is the displacement at which 1 % of answers are wrong, measured with noise on the
    hidden states of short words; None where no noise has that effect. `drift` is the growth of the
    displacement per symbol, in least squares over positions up to `drift_to`. `predicted` is their
    quotient, `T_cross = tau M / |W eta|` of Corollary 1, from where the line is; None without
    growth. `exponent` is that of a power law through the same positions, and `predicted_by_growth`
    where that crosses. `observed` is the first position at which 1 % of the answers are wrong,
    `first_error` that of the first wrong answer of all `words`, read to `length`.

    `margin` is the smallest distance of a reference mean from the boundary of its label, over the
    length of the longest; `horizons` are the symbols for which rounding, at worst, stays within it
    if operators keep lengths, by precision. None where the readout is not linear in the state.
    """

    kind: ClassVar[str] = "error-control"

    states: int
    words: int
    length: int
    reference: tuple[int, int]
    """The first and the last position that reference means are taken from."""
    spreads: tuple[Spread, ...]
    threshold: float | None
    drift: float | None
    drift_to: int
    exponent: float | None
    predicted: int | None
    predicted_by_growth: int | None
    observed: int | None
    first_error: int | None
    noise: tuple[NoiseRow, ...]
    precisions: tuple[PrecisionRow, ...]
    fails_first: str | None
    """The precision with the earliest wrong answer, float64 where others are not earlier.

    Then it is not rounding that fails. None where none is wrong.
    """
    margin: float | None
    horizons: tuple[tuple[str, int], ...]
    complete: bool
    seconds: float


# --- representation ---

Complexes = tuple[tuple[float, float], ...]
"""Complex numbers as pairs of their real and imaginary part."""


@dataclass(frozen=True, kw_only=True)
class Spectrum:
    """The eigenvalues of one symbol's operator: in the used subspace, and all of them."""

    symbol: str
    used: Complexes
    every: Complexes


@dataclass(frozen=True, kw_only=True)
class Plane:
    """What every symbol does to one plane, or to one line, that all of them keep.

    `angles` are in radians, in (-pi, pi], turned so that the symbol that counts 1 has none below 0;
    None where an operator is no rotation of the plane, up to its length and a change of basis.
    `weight` is the share of the squared logits that is read from the plane.
    """

    dimension: int
    weight: float
    angles: tuple[float | None, ...]
    moduli: tuple[float, ...]
    harmonic: float | None
    """The angle of the symbol that counts 1, over 2 pi / m; None where the task does not count."""
    integer: int | None
    """The whole number nearest to what all symbols' angles say."""
    deviation: float | None
    """How far an angle is from that of the whole number, in radians, at most."""


@dataclass(frozen=True, kw_only=True)
class Commutators:
    """Spectral norms of A_x A_y - A_y A_x in the used subspace, over pairs of symbols.

    `relative` is the largest as a part of `|A_x| |A_y|`. `largest_of_commuting` is over pairs whose
    maps of the automaton's states commute (0 in an exact representation), `smallest_of_others` over
    the rest; None where there are none.
    """

    pairs: int
    largest: float
    relative: float
    largest_of_commuting: float | None
    smallest_of_others: float | None
    complete: bool


@dataclass(frozen=True, kw_only=True)
class Homomorphism:
    """How far words that do the same are from being the same operator, on the used subspace.

    For every map g of the states that words make, with a shortest word w for it, and every symbol
    x: the spectral norm of A_x A_w - A_v, with v the shortest word for what w x does, in the norm
    of the used subspace, in which an exact operator of a group has norm 1. What leaves the
    subspace counts too. `mean` is the root of the mean square over pairs and directions.
    """

    elements: int
    pairs: int
    largest: float
    mean: float
    complete: bool
    """Whether these are all maps that words make."""


@dataclass(frozen=True, kw_only=True)
class Irreducible:
    """One irreducible representation over the reals, and how often it was learned.

    `multiplicity` is the inner product of characters, as it comes out; `weight` the share of the
    squared logits that is read from it, in the states that the group permutes. `character` has a
    value for each conjugacy class.
    """

    name: str
    dimension: int
    type: str
    faithful: bool
    multiplicity: float
    weight: float
    character: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class LearnedGroup:
    """The representation of one group among the maps of the states, by its character.

    Of a task whose symbols permute the states it is the whole group; else one maximal subgroup of
    the transition monoid, on the image of its identity. `dimension` is the trace of the identity's
    operator; the multiplicities times the dimensions of the irreducibles add up to it. `accounted`
    is that sum with whole multiplicities, `residue` how far one is from a whole number.
    """

    name: str
    order: int
    dimension: float
    irreducibles: tuple[Irreducible, ...]
    accounted: int
    residue: float
    class_sizes: tuple[int, ...]
    class_orders: tuple[int, ...]
    class_words: tuple[str, ...]
    """A shortest word of a member of each class; empty for the identity of the group."""
    character: tuple[float, ...]
    """The mean trace over each class."""
    spread: float
    """How far the trace of an element is from the mean of its class, at most."""


@dataclass(frozen=True, kw_only=True)
class Representation(Evidence):
    """The linear representation that a model with one operator per symbol has learned.

    Everything is said of the used subspace: what mean hidden states of the automaton's states span,
    as far as it is read (`statetrack.evidence.used_space`). `growth` is by which factor every
    symbol's operator makes the mean states longer, in least squares; where answers do not depend on
    the size of states, operators are divided by it for characters and defects.
    """

    kind: ClassVar[str] = "representation"

    symbols: tuple[str, ...]
    width: int
    affine: bool
    """Whether something is added at every step: then states have a further coordinate, always 1."""
    read: bool
    """Whether the readout is linear in the state, so that what it does not read is left out."""
    dimension: int
    strengths: tuple[float, ...]
    """Root mean square of the mean states along the directions of the subspace, largest first."""
    spread: float
    """The largest spread of one state's hidden states along these, as a part of the strength."""
    next_strength: float
    """The strength of the strongest direction that was left out."""
    growth: tuple[float, ...]
    spectra: tuple[Spectrum, ...]
    planes: tuple[Plane, ...]
    planes_are: str
    """What the planes are, or why there are none."""
    modulus: int | None
    """m, where the task's group is cyclic of that order."""
    unit: int | None
    """The first symbol that generates it: the one that counts 1."""
    commutators: Commutators | None
    homomorphism: Homomorphism | None
    groups: tuple[LearnedGroup, ...]
    groups_are: str
    """Empty, or why there are no groups."""
    complete: bool
    seconds: float


# --- worst-case ---


@dataclass(frozen=True)
class Family:
    """Words of one kind that were tried: how many, and how far the longest was read.

    `settled` of them came back to a state that they had been in, so that they are right at every
    length. `first_error` is the earliest position of a wrong answer, None where there was none:
    then, or up to there, all of them are right. `failure` is that word, where the model also fails
    on it alone, and `predicted` where a linear model is predicted to.
    """

    name: str
    words: int
    longest: int
    settled: int
    first_error: int | None
    failure: Failure | None = None
    predicted: int | None = None


@dataclass(frozen=True, kw_only=True)
class WorstCase(Evidence):
    """The earliest wrong answer that was found to any word, and what was tried.

    `horizon` is the length up to which every word tried is right: `tested`, the length of the
    longest, where no wrong answer was found. Words not tried may be wrong earlier. `failure` fails
    earliest, and is of a `family`. `predicted` is the position at which it should fail by the
    eigenvalues of a linear model, in float64 arithmetic; None where nothing is predicted.
    `position_float64` is that at which the model fails on it in float64; None where it does not,
    up to the end of a word with a suffix, or up to `longest`, the greatest length asked for.
    `drawable_only` says that no word was tried that the task does not draw.
    """

    kind: ClassVar[str] = "worst-case"

    horizon: int
    tested: int
    longest: int
    failure: Failure | None
    family: str | None
    predicted: int | None
    position_float64: int | None
    families: tuple[Family, ...]
    drawable_only: bool
    seed: int
    complete: bool
    seconds: float


# --- extraction ---


@dataclass(frozen=True, kw_only=True)
class Extraction(Evidence):
    """The machine that a network computes, as L* or KV learn it from its answers: a hypothesis.

    The machine is as small as possible: it has `states`, where the task needs `needed` (None
    without a task), not counted the void one that words with forbidden symbols lead to. `delta`
    has for each state where each symbol leads, `output` its label, which is None where none is
    asked for, and the number of labels where logits are not finite. Without any state, nothing was
    extracted.

    `equivalent` says whether machine and task agree on every word; False where the network was seen
    to answer some word wrongly; None where there is no task, and where learning was ended before
    either was known. `difference` is the shortest word that the network was seen to answer wrongly:
    where `reason` is "tested", the shortest on which machine and task differ.

    The network has read `words` words, of up to `longest` symbols, and all that are drawn of up to
    `all_to`. Where `reason` is "tested", the machine agrees with all of them, the last of which
    were `random_words` of up to `random_length` symbols; and if the network is a machine with at
    most `extra_states` more states, it is this one (None: not even that is known). Where it is
    "length", the same holds but for longer words, one of which is known to be answered otherwise by
    the network than by the machine. Other reasons are in `EXTRACTION_ENDINGS`; then the machine is
    the last hypothesis, which may be wrong.
    """

    kind: ClassVar[str] = "extraction"

    algorithm: str
    states: int
    needed: int | None
    equivalent: bool | None
    difference: Failure | None
    words: int
    longest: int
    all_to: int
    random_words: int
    random_length: int
    extra_states: int | None
    delta: tuple[tuple[int, ...], ...]
    output: tuple[int | None, ...]
    start: int
    reason: str
    complete: bool
    seconds: float

    @property
    def verdict(self) -> str:
        """What was found, in a few words."""
        if self.equivalent is False and self.difference is not None:
            return f"differs at length {self.difference.position}"
        if self.equivalent:
            return "equivalent"
        return "not decided" if self.needed is not None else f"{self.states} states"


EXTRACTION_ENDINGS: dict[str, str] = {
    "tested": "no word was found on which machine and network differ",
    "length": "machine and network differ on a word that is too long to learn from",
    "states": "the machine has more states than the cap",
    "words": "as many words were read as the cap allows",
    "time": "the time was spent",
}
"""What ends an extraction: `Extraction.reason`, and what it says."""

# --- myhill-nerode ---


@dataclass(frozen=True, kw_only=True)
class NerodeScores:
    """Compression precision, distinction precision and distinction recall, each from 0 to 1.

    None where there is no pair of words to measure it on.
    """

    compression_precision: float | None
    distinction_precision: float | None
    distinction_recall: float | None


@dataclass(frozen=True, kw_only=True)
class MyhillNerode(Evidence):
    """Whether a network keeps apart, and does not, the words that the task does (`myhill_nerode`).

    `exact` is over all pairs of the `prefixes` words of up to `prefix_length` symbols that the task
    draws (the empty one included), which reach `reached` of the `states` of its smallest machine,
    and over all `suffixes` words of 1 to `suffix_length` symbols behind them. `tells_apart` says
    whether these suffixes tell apart every two states that any suffix does. `sampled` is over
    `sampled_prefixes` random words of up to `sampled_length` symbols, and `sampled_suffixes` random
    suffixes.
    """

    kind: ClassVar[str] = "myhill-nerode"

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
    complete: bool
    seconds: float


EVIDENCE: dict[str, type[Evidence]] = {
    Certificate.kind: Certificate,
    Exhaustive.kind: Exhaustive,
    ErrorControl.kind: ErrorControl,
    Representation.kind: Representation,
    WorstCase.kind: WorstCase,
    Extraction.kind: Extraction,
    MyhillNerode.kind: MyhillNerode,
}
"""The kinds of evidence by name."""
