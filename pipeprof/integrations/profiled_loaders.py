"""Keep the loaders that a framework iterates, with their profiles."""

from __future__ import annotations

import logging
import re
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from pipeprof.errors import PipeprofError
from pipeprof.loaders.instrument.inside import loader_within, measure_inside
from pipeprof.loaders.instrument.profiler import LoaderProfiler
from pipeprof.loaders.instrument.rebuilds import profiler_of
from pipeprof.loaders.instrument.wrap import ProfiledLoader, stand_in, wrap
from pipeprof.log import log_caught, say, suppress_and_log
from pipeprof.model import Profile

_log = logging.getLogger(__name__)


class ProfiledLoaders:
    """Loaders by the name of what they feed, such as ``train``. A loader that is made again, as in
    each epoch, continues the profile of its predecessor."""

    def __init__(self) -> None:
        self._by_name: dict[str, ProfiledLoader] = {}

    def wrap(self, loader: Any, name: str) -> Any:
        """Return ``loader`` with a profile; as it is where it cannot be profiled."""
        if _is_tuned(loader):
            say(f"{name}: this loader is tuned, so it has no profile here; see its tuning()")
            return loader
        try:
            known = self._by_name.get(name)
            if known is None or is_wrapped(loader):
                profiled = wrap(loader, name)
            elif known._loader is loader:
                return known
            else:
                profiled = stand_in(loader, known._profiler)
        except Exception as error:
            log_caught(_log, error, f"the loader {name} is not measured")
            return loader
        self._by_name[name] = profiled
        return profiled

    def measure(self, loader: Any, name: str) -> None:
        """Measure ``loader`` itself from inside, where a stand-in cannot take its place."""
        within = loader_within(loader)
        inner = loader if within is None else within
        measured_by = profiler_of(inner)
        if isinstance(measured_by, LoaderProfiler):
            self._by_name[name] = stand_in(loader, measured_by)
        elif measured_by is None and is_wrapped(profiled := self.wrap(loader, name)):
            measure_inside(inner, profiled._profiler)

    @property
    def profiles(self) -> dict[str, Profile]:
        """The profile of each loader that delivered a batch, by its name; also of one whose batches
        another rank takes."""
        known = self._by_name.items()
        return {name: each.profile() for name, each in known if each._profiler.has_report}

    def report(self, out: str | Path | None, rank: int = 0, ranks: int = 1) -> None:
        """Print the first screen of each profile to stderr, on rank 0, and save the profiles as
        ``OUT/NAME.json``, or ``OUT/rank0/NAME.json`` where there are several ranks."""
        with suppress_and_log(_log, "the profiles are not shown"):
            profiles = self.profiles
            for name, profile in profiles.items() if not rank else ():
                say(f"{name}\n\n{profile}\n")
            if not profiles:
                say("no loader was measured: none that the training iterated could be profiled.")
            elif out is not None:
                folder = Path(out, f"rank{rank}") if ranks > 1 else Path(out)
                _save(profiles, folder)


def _save(profiles: dict[str, Profile], folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, profile in profiles.items():
            profile.save(folder / f"{name}.json")
    except OSError as error:
        say(f"{folder} cannot be created: {error.strerror}.")
    except PipeprofError as error:
        say(str(error))
    else:
        say(f"saved {', '.join(str(folder / f'{name}.json') for name in profiles)}")


def warn_if_too_old(package: str, least: str) -> None:
    """Say so where a framework is older than the least version that this package works with."""
    with suppress(PackageNotFoundError):
        found = version(package)
        if _release(found) < _release(least):
            say(f"{package} {found} is too old to be profiled as a whole; {least} or newer is.")


def _release(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text)[:2])


def _is_tuned(loader: Any) -> bool:
    """Return whether ``loader`` is tuned, which measures it in another way."""
    measured_by = profiler_of(loader)
    return measured_by is not None and not isinstance(measured_by, LoaderProfiler)


def is_wrapped(loader: Any) -> bool:
    """Return whether ``loader`` is wrapped already, by the script."""
    return issubclass(type(loader), ProfiledLoader)
