"""What a report is: a saved result in, a text out. Nothing is measured or decided here."""

from __future__ import annotations

from typing import Protocol, TypeAlias

from pipeprof.model import Comparison, Profile, SweepResult

Result: TypeAlias = "Profile | SweepResult | Comparison"


class Renderer(Protocol):
    """One kind of report. Each passes the suite in ``tests/contracts/report_contract.py``."""

    name: str

    def render(self, result: Result) -> str:
        """The whole report. Never fails on a valid ``result``, whatever its names hold."""
        ...
