"""The trials of a sweep, in the order in which they run."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from pipeprof.errors import UsageError
from pipeprof.model import SweepSpec


@dataclass(frozen=True)
class TrialSetting:
    """One point of the grid."""

    url: str
    batch_size: int | None
    """``None``: left to the user's own loader or script."""
    num_workers: int
    prefetch_factor: int | None
    """``None`` without workers."""


def grid(spec: SweepSpec, urls: tuple[str, ...] | None = None) -> tuple[TrialSetting, ...]:
    """Every combination once; without workers, prefetching means nothing and is not varied.

    ``urls``: those of the spec, with the credentials that a spec leaves out.
    Raises `UsageError` for a spec that cannot be run.
    """
    check(spec)
    settings = (
        TrialSetting(url, batch_size, workers, prefetch if workers else None)
        for url, batch_size, workers, prefetch in product(
            urls or spec.urls, spec.batch_sizes or (None,), spec.workers, spec.prefetch
        )
    )
    return tuple(dict.fromkeys(settings))


def check(spec: SweepSpec) -> None:
    """Raises `UsageError`."""
    for name, values, least in (
        ("URL", spec.urls, None),
        ("--workers", spec.workers, 0),
        ("--prefetch", spec.prefetch, 1),
        ("--batch-size", spec.batch_sizes, 1),
    ):
        left_out = spec.own is not None and values is spec.batch_sizes
        if not values and not left_out:
            raise UsageError(f"nothing to try: give at least one {name}")
        wrong = [value for value in values if isinstance(value, int) and value < (least or 0)]
        if wrong:
            raise UsageError(f"{name} {wrong[0]} is impossible; it must be at least {least}")
    if spec.conversion is not None and len(spec.urls) > 1:
        raise UsageError("--formats converts one data set; name one URL")
    if spec.own is not None and (spec.conversion or spec.transform or spec.columns):
        raise UsageError(
            "--formats, --transform and --columns are for data sets, not for what makes batches of "
            "its own"
        )
    if not spec.trial_s > 0 or spec.warmup_s < 0:
        raise UsageError("a trial must measure for more than 0 s")
    if not 0 < spec.threshold < 1:
        raise UsageError(f"a threshold of {spec.threshold} is impossible; it is a share, 0 to 1")
    _check_step(spec)


def _check_step(spec: SweepSpec) -> None:
    given = sum(step is not None for step in (spec.step_s, spec.step))
    if spec.script is not None:
        if given:
            raise UsageError("a script has a training step of its own; leave out any other")
    elif given != 1:
        raise UsageError("give either an emulated step time or a training step of your own")
    elif spec.step_s is not None and not spec.step_s >= 0:
        raise UsageError(f"a step of {spec.step_s} s is impossible; give 0 or more")
