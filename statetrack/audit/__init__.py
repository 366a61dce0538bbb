"""Audits: the accuracy of predictors that track no state."""

from statetrack.audit.auditing import (
    CLEARLY,
    HELD_OUT,
    MOST_SYMBOLS,
    SOLVED,
    Audit,
    Part,
    SplitAudit,
    audit,
    best_by_length,
    draw_held_out,
    draw_tests,
    draw_train,
)
from statetrack.audit.shortcuts import LONGEST_LOOKUP, VIEWS, Shortcuts
from statetrack.scoring import Accuracies

__all__ = [
    "CLEARLY",
    "HELD_OUT",
    "LONGEST_LOOKUP",
    "MOST_SYMBOLS",
    "SOLVED",
    "VIEWS",
    "Accuracies",
    "Audit",
    "Part",
    "Shortcuts",
    "SplitAudit",
    "audit",
    "best_by_length",
    "draw_held_out",
    "draw_tests",
    "draw_train",
]
