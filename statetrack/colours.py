"""Colours of figures, which colour-blind readers can distinguish (Okabe and Ito 2008)."""

from __future__ import annotations

INK, NOTE, FILL = "#1a1a1a", "#595959", "#f2f2f2"
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
BLUE, ORANGE, GREEN = PALETTE[:3]
