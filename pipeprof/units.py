"""Parse and format bytes, rates, durations and counts."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pipeprof.errors import UsageError

_SI = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50}
_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([kKMGTP]?i?)[Bb]?\s*")


def parse_size(text: str) -> int:
    """Return the bytes of ``"64KiB"``, ``"1.5 GB"`` or ``"4096"``: ``Ki`` is 1024, ``k`` is 1000.

    Raises `UsageError`.
    """
    match = _SIZE.fullmatch(text)
    factor = {**_SI, **_BINARY, "K": 10**3, "ki": 2**10}.get(match[2]) if match else None
    if match is None or factor is None:
        raise UsageError(f"{text!r} is not a size; write it like 64KiB, 1.5GB or 4096")
    return round(float(match[1]) * factor)


def format_bytes(count: float) -> str:
    """Format as ``"1.5 GB"``: SI units, three significant digits."""
    return _scaled(count, "B")


def format_binary(count: int) -> str:
    """Format as ``"64 MiB"`` where ``count`` is whole in a binary unit, else as `format_bytes`."""
    for unit in ("Gi", "Mi", "Ki"):
        if count >= _BINARY[unit] and count % _BINARY[unit] == 0:
            return f"{count // _BINARY[unit]:,} {unit}B"
    return format_bytes(count)


def format_rate(per_s: float, unit: str = "B") -> str:
    """Format as ``"1.5 GB/s"``; ``format_rate(2300, "samples")`` is ``"2,300 samples/s"``."""
    if unit == "B":
        return _scaled(per_s, "B") + "/s"
    return f"{format_count(per_s)} {unit}/s"


def format_count(value: float) -> str:
    """Format with three significant digits below 1,000, and as a whole number with commas above."""
    return f"{value:,.0f}" if abs(value) >= 999.5 else _significant(value)


def format_duration(seconds: float) -> str:
    """Format as ``"3.20 ms"``, ``"48.0 s"`` or ``"2 min 5 s"``."""
    if seconds < 0:
        return "-" + format_duration(-seconds)
    if seconds >= 119.5:
        whole = round(seconds)
        hours, minutes = divmod(whole // 60, 60)
        return f"{hours} h {minutes} min" if hours else f"{minutes} min {whole % 60} s"
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 0.9995:
            return f"{_significant(seconds * factor)} {unit}"
    return f"{_significant(seconds * 1e6)} µs" if seconds else "0 s"


def format_share(share: float) -> str:
    """Format as ``"12.3 %"``, and as a whole number from 99.95 % up."""
    return f"{share:.0%}".replace("%", " %") if share >= 0.9995 else f"{share * 100:.1f} %"


def _scaled(value: float, unit: str) -> str:
    for prefix in ("", "k", "M", "G", "T", "P"):
        scaled = value / _SI[prefix]
        if abs(scaled) < 999.5 or prefix == "P":
            return f"{_significant(scaled) if prefix else f'{scaled:.0f}'} {prefix}{unit}"
    raise AssertionError("unreachable")


def _significant(value: float) -> str:
    """Format with three significant digits and no exponent."""
    if abs(value) >= 99.95:
        return f"{value:.0f}"
    if abs(value) >= 9.995:
        return f"{value:.1f}"
    return f"{value:.2f}"


def counted(count: float, noun: str, several: str = "") -> str:
    """Format as ``"1 worker"``, ``"2,000 batches"`` or ``"3.4 requests"``, whole from ten up.
    ``several`` is the plural where it is irregular."""
    figure = f"{count:,.0f}" if count == round(count) or count >= 9.95 else f"{count:.1f}"
    if figure == "1":
        return f"1 {noun}"
    return f"{figure} {several or noun + ('es' if noun.endswith('tch') else 's')}"


def listed(names: Sequence[str]) -> str:
    """Join names as ``"a, b and c"``."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def capital(text: str) -> str:
    """Return ``text`` with a capital first letter."""
    return f"{text[:1].upper()}{text[1:]}"


def percent(share: float) -> str:
    """Format as ``"83 %"``."""
    return f"{share * 100:.0f} %"
