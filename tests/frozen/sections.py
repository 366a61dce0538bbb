"""The sections by name, in the order in which they are recorded."""

from __future__ import annotations

from collections.abc import Callable

from .evidence import record_evidence
from .knowledge import record_algebra, record_api, record_help, record_lists
from .mistakes import record_errors
from .recording import Recorder
from .reports import record_reports
from .trained import TrainedRuns, record_runs
from .words import record_data

SECTIONS: dict[str, Callable[[Recorder, TrainedRuns], None]] = {
    "help": record_help,
    "api": record_api,
    "lists": record_lists,
    "algebra": record_algebra,
    "errors": record_errors,
    "data": record_data,
    "runs": record_runs,
    "evidence": record_evidence,
    "reports": record_reports,
}
