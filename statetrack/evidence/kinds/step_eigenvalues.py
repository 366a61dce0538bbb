"""The eigenvalues that a network's steps have, beside those that its settings claim."""

from __future__ import annotations

from dataclasses import dataclass

from statetrack.evidence.records import EVIDENCE, Evidence, Facts, Named
from statetrack.models import StepEigenvalues


@EVIDENCE.register("step-eigenvalues")
@dataclass(frozen=True, kw_only=True)
class RealisedEigenvalues(Evidence):
    """The range of the eigenvalues of steps: of what multiplies the state, or of its Jacobian.

    `on_symbols` is over the task's symbols behind random words, `on_random` over random vectors as
    inputs, which say what the weights can do at all; None where symbols have no table of vectors.
    `claimed` is where the settings' class of recurrence says that they lie, None where it does not.
    """

    kind = "step-eigenvalues"
    commands = ("probe",)
    place = 5.5
    share = 0.1
    found_by = "statetrack.evidence.realised_eigenvalues:find_step_eigenvalues"

    on_symbols: StepEigenvalues
    on_random: StepEigenvalues | None
    claimed: str | None

    def lines(self, names: Named) -> list[Facts]:
        """The ranges, what is claimed, and what does not agree with it."""
        facts = [("of steps", f"{self.on_symbols}, over {self.on_symbols.steps} of the task")]
        if self.on_random is not None:
            facts.append(("", f"{self.on_random}, over {self.on_random.steps} of random inputs"))
        if self.claimed is not None:
            facts.append(("claimed", f"{self.claimed}{self.said}"))
        return [Facts(facts)]

    @property
    def ranges(self) -> list[StepEigenvalues]:
        """Those that were measured."""
        return [each for each in (self.on_symbols, self.on_random) if each is not None]

    @property
    def beyond(self) -> bool:
        """Whether some eigenvalue is none of those that are claimed."""
        claimed = self.claimed
        return claimed is not None and any(each.beyond(claimed) for each in self.ranges)

    @property
    def said(self) -> str:
        """What does not agree with the claim, behind a colon; empty where everything does."""
        if self.claimed is None:
            return ""
        if self.beyond:
            return ": some eigenvalues are none of these"
        if all(each.lacks_negative(self.claimed) for each in self.ranges):
            return ": none below 0 was found"
        return ""
