"""Audit a task or a dataset: how accurate are predictors that follow no state?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from statetrack.catalogue import AuditSettings
from statetrack.cli import options

PLACE = 8
"""Its place among the commands that `statetrack --help` lists."""


def build(argv: list[str]) -> Callable[..., None]:
    """The command `statetrack audit`."""
    flags = [options.flag(name) for name in ("length", *AuditSettings.model_fields)]
    given = [flag for flag in flags if options.peek(argv, flag) is not None]

    def audit(
        what: Annotated[
            str, typer.Argument(metavar="TASK|DATASET", help="A task, or a folder that gen wrote.")
        ],
        length: options.TestLengths = None,
        as_json: options.PrintJson = False,
        **values: Any,
    ) -> None:
        """Audit a task or a dataset: how accurate are predictors that follow no state?

        Predictors that see only the last symbols, the position, the length of the word or the set
        of its symbols are fitted on training words and measured on others. Where one of them is
        right, the accuracy of a model is no evidence that it tracks a state.

        The words of a task are those that `train` and `eval` draw with that seed. For a dataset,
        shortcuts are fitted on the split `train` and measured on all others. A name is first taken
        as that of a task: write ./NAME for a folder of the same name.

        Examples:
            statetrack audit s3
            statetrack audit parity --length 100 --words group

        """
        from statetrack.cli._audit import show_audit  # numpy, which `--help` does not need

        settings = options.collect(AuditSettings, values)
        show_audit(what, settings, length or (), given, as_json)

    return options.with_settings(audit, options.parameters(AuditSettings, "Words of a task"))
