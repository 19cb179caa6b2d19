"""How findings and advice word their numbers."""

from __future__ import annotations


def counted(count: float, noun: str, several: str = "") -> str:
    """``"1 worker"``, ``"2,000 batches"``, ``"3.4 requests"``; whole from ten up. ``several``: the
    plural, where it is irregular."""
    figure = f"{count:,.0f}" if count == round(count) or count >= 9.95 else f"{count:.1f}"
    if figure == "1":
        return f"1 {noun}"
    return f"{figure} {several or noun + ('es' if noun.endswith('tch') else 's')}"


def percent(share: float) -> str:
    """``"83 %"``."""
    return f"{share * 100:.0f} %"
