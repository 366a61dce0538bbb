"""How processes of this machine begin: forked from a server that has imported what they need.

A process has one server, whose imports are those that it is first asked for.
"""

from __future__ import annotations

import multiprocessing
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # Windows has only one of them
    from multiprocessing.context import ForkServerContext, SpawnContext


def forked_after(module: str) -> ForkServerContext | SpawnContext:
    """Processes that begin with a module and all that it imports, where the system can do that."""
    if sys.platform == "win32":
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([module])
    return context


def begin_server(module: str) -> None:
    """Begin the server that processes are forked from, which imports the module meanwhile."""
    from multiprocessing import forkserver

    forked_after(module)
    forkserver.ensure_running()
