"""Replace a run's operators by the exact representation that they are close to."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from statetrack.cli import options
from statetrack.errors import SettingsError

PLACE = 3.6
"""Its place among the commands that `statetrack --help` lists."""


def build(argv: list[str]) -> Callable[..., None]:
    """The command; its options do not depend on the arguments."""

    def snap(
        run: Annotated[
            Path | None,
            typer.Argument(metavar="[RUN]", help="A run folder; by default the newest."),
        ] = None,
        *,
        out: Annotated[
            Path | None,
            typer.Option(
                help="The new run's folder; by default RUN with -snapped behind it.",
                metavar="FOLDER",
            ),
        ] = None,
        force: options.Force = False,
        defect: Annotated[
            float,
            typer.Option(help="The largest defect, relative to the states, to start from.", min=0),
        ] = 0.05,
        integers: Annotated[
            bool,
            typer.Option(
                "--integers",
                help="Whole numbers alone, of matrices, blocks or factors: nothing is ever "
                "rounded. A model without room for them is refused.",
            ),
        ] = False,
        seconds: options.Seconds = 40.0,
        replica: options.Replica = None,
        as_json: options.AsJson = False,
        device: options.Device = None,
        trust_plugin: options.TrustPlugin = False,
    ) -> None:
        """Replace a linear model's operators by the exact representation that they are close to.

        The learned operators miss the states that they should lead to by a small defect, which
        adds up over long words. The exact ones, of the same structure, are written to a new run,
        with a certificate of how long it is right; the run itself is left as it is.

        Examples:
            statetrack snap runs/mine --out runs/snapped
            statetrack snap runs/mine --replica 2 --json
            statetrack snap runs/mine --integers

        """
        # what follows imports torch, which `--help` does not need
        from statetrack.cli._evidence import Searched
        from statetrack.cli._terminal import print_json, searching
        from statetrack.evidence import snap_subject
        from statetrack.models import SequenceModel
        from statetrack.report import console, facts
        from statetrack.runs import Conditions, require_new, write_derived
        from statetrack.scoring import plain

        opened = Searched(run, None, device, trust_plugin)
        path = opened.path
        folder = path.with_name(f"{path.name}-snapped") if out is None else out
        require_new(folder, force=force)
        if force and folder.resolve() == path.resolve():
            raise SettingsError("--force: a run is not replaced by what is made of it")
        ((outcome, subject),) = opened.run.subjects(replica=replica)
        with searching(f"{opened.of}, replica {outcome.replica}", seconds) as budget:
            found = snap_subject(subject, defect, budget, integers=integers)
        assert isinstance(found.model, SequenceModel)
        about: dict[str, str | float | int] = {
            "snapped_from": str(path),
            "snapped_replica": outcome.replica,
            "snapped_defect": found.defect,
        }
        command = shlex.join(["statetrack", "snap", *argv])
        made = write_derived(
            opened.run, outcome, found.model, folder, about, command=command, force=force
        )
        proof = found.certificate
        made.add_evidence(proof, made.selected, conditions=Conditions.of(subject, 0, seconds))
        if as_json:
            content = about | {
                **opened.about,
                "run": str(made.path),
                "dimension": found.dimension,
                "kind": found.kind,
                "certificate": asdict(proof),
            }
            print_json(plain(content))
            return
        rounded = "" if integers else " but for rounding"
        real = _proven(proof.verdict_real, proof.length_real)
        lines = [
            ("learned operators", f"miss the states by {found.defect:.1e}"),
            ("now", f"{found.kind}, dimension {found.dimension}: exact{rounded}"),
            ("proven", _proven(proof.verdict, proof.length)),
            ("in real arithmetic", f"{real}; the representation itself: all lengths"),
        ]
        opened.print_heading(outcome)
        console().print(facts(lines))
        console().print(f"run: {made.path}", soft_wrap=True)

    return snap


def _proven(verdict: str, length: int | None) -> str:
    """What is proven, in words."""
    return f"every word to {length:,} symbols" if length is not None else verdict
