"""The command line: one thin file per command, loaded when it is called."""

from __future__ import annotations

from pipeprof.cli.app import main

__all__ = ["main"]
