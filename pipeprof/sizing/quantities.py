"""Kinds of numbers that sizing deals in. Each is a float; its name says its unit, which a formula
tells by its annotations."""

from __future__ import annotations

from typing import Final, TypeAlias

Bytes: TypeAlias = float
BytesPerS: TypeAlias = float
Seconds: TypeAlias = float
PerS: TypeAlias = float
Count: TypeAlias = float
Share: TypeAlias = float
Flop: TypeAlias = float
FlopPerS: TypeAlias = float
Dollars: TypeAlias = float

UNITS: Final = {
    "Bytes": "B",
    "BytesPerS": "B/s",
    "Seconds": "s",
    "PerS": "1/s",
    "Count": "",
    "Share": "share",
    "Flop": "FLOP",
    "FlopPerS": "FLOP/s",
    "Dollars": "$",
}
"""As they are saved: base units, shares 0..1."""
