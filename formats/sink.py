"""A file in memory that gives away what was written, for encoders that work in pieces."""

from __future__ import annotations

import io


class PieceSink(io.BytesIO):
    """Keeps what a writer wrote until it is taken, and counts on from there."""

    _taken = 0

    def take(self) -> bytes:
        """Return what was written since the last call."""
        data = self.getvalue()
        self._taken += len(data)
        self.seek(0)
        self.truncate()
        return data

    def tell(self) -> int:
        return self._taken + super().tell()
