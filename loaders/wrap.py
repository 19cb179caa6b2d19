"""`pipeprof.wrap`: the loader you have, seen from inside."""

from __future__ import annotations

from typing import Any

from pipeprof.errors import UsageError
from pipeprof.loaders.iterator import ProfiledIterator
from pipeprof.loaders.watch import Watch
from pipeprof.model import Profile, Recording


def wrap(loader: Any, name: str = "loader", accelerator: str = "not looked at") -> ProfiledLoader:
    """Profile ``loader`` as it is iterated; everything else about it stays as it is.

    ``loader`` is a torch DataLoader, or any other iterable of batches, of which only the host's
    side is seen. ``accelerator`` says in the profile what consumes the batches.
    Raises `UsageError` for what cannot be iterated.
    """
    if type(loader) is ProfiledLoader:
        return loader
    if not hasattr(type(loader), "__iter__"):
        raise UsageError(
            f"wrap() takes a DataLoader or another iterable of batches, not {type(loader).__name__}"
        )
    return ProfiledLoader(loader, Watch(name, accelerator))


class ProfiledLoader:
    """Behaves as the loader it wraps, and has `profile`."""

    _own = ("_loader", "_watch")

    _loader: Any
    _watch: Watch

    def __init__(self, loader: Any, watch: Watch) -> None:
        object.__setattr__(self, "_loader", loader)
        object.__setattr__(self, "_watch", watch)

    def __iter__(self) -> ProfiledIterator:
        loader = self._loader
        return self._watch.iterate(loader, lambda: iter(loader))

    def profile(self, threshold: float = 0.05) -> Profile:
        """All epochs so far, analysed. ``threshold``: the starved share that counts as starved."""
        return self._watch.profile(threshold)

    def recording(self) -> Recording:
        """All epochs so far, as measured: of a long run the end."""
        return self._watch.recording()

    def __len__(self) -> int:
        return len(self._loader)

    def __getattr__(self, name: str) -> Any:
        if name in self._own:  # not made yet, as when it is copied
            raise AttributeError(name)
        return getattr(self._loader, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._loader, name, value)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """``isinstance(wrapped, DataLoader)`` holds where it held for the loader itself."""
        return type(self._loader)
