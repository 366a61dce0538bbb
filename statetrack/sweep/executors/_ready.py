"""What every worker of this machine needs, imported once: by the server that they are forked from.

Nothing else imports this module, since it leaves libraries one thread, as each worker has.
"""

from __future__ import annotations

import gc
import os


def import_all() -> None:
    """Import what points need of which every worker would take seconds to import its own."""
    import torch

    import statetrack.evaluation
    import statetrack.sweep.work  # noqa: F401
    from statetrack.ops import why_not
    from statetrack.runs import Run  # noqa: F401

    why_not("native", torch.device("cpu"))  # imports numba, if it is there


gc.disable()
os.environ["OMP_NUM_THREADS"] = "1"  # before numpy and torch are imported
import_all()
gc.freeze()  # so that no worker looks through what is imported
gc.enable()
