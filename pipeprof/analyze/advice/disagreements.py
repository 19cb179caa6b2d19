"""Explain why the parts of a report name different causes, as codes with figures.

Each part answers another question. The cause is what the accelerator waited for. Worth is the gain
from a cheaper cause. A ceiling is the rate that one resource allows if nothing else slows it down.
Advice is the first setting that helps. Mostly the answers agree; where they do not, the report says
why and which to follow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import hypot

from pipeprof.analyze.advice.proposal import Figures
from pipeprof.analyze.advice.worth import MODEL_ERROR
from pipeprof.analyze.profile.intervals import NORMAL_90
from pipeprof.analyze.profile.stall_attribution import (
    DISPATCH,
    MAIN,
    OTHER_LOADERS,
    PIN,
    PIPELINE,
    SAMPLER,
    TRANSFER,
    UNKNOWN,
    WORKER_CPU,
)
from pipeprof.analyze.profile.worker_activity import STAGES
from pipeprof.analyze.thresholds import MINOR_SHARE
from pipeprof.model import Diagnosis, Worth

_LEAST_DIFFERENCE = 0.01
"""Difference of two gains that is worth a sentence."""
_FETCHING = frozenset((*STAGES, DISPATCH, "workers", "storage-bandwidth", "storage-latency",
                     "storage-client"))  # fmt: skip
_CORES = frozenset((WORKER_CPU,))
_HANDING_OVER = frozenset((TRANSFER, MAIN, PIN, SAMPLER, "h2d"))
_SYNONYMS = (_FETCHING, _CORES | {"workers"}, _HANDING_OVER)
"""Groups of names of causes and ceilings that mean the same."""
_FIXED_BY: dict[str, frozenset[str]] = {
    "num_workers": _FETCHING | _CORES | _HANDING_OVER,
    "prefetch_factor": _FETCHING,
    "in_order": _FETCHING,
    "storage bandwidth": _FETCHING,
    "concurrent requests": _FETCHING,
    "cores": _CORES | _FETCHING,
    "worker_init_fn": _CORES | _FETCHING,
    "collate_fn": _HANDING_OVER,
    "batch_size": _HANDING_OVER,
    "sampler": _HANDING_OVER,
    "pin_memory": _HANDING_OVER,
}
"""The causes that each setting of a recommendation addresses."""


Disagreement = tuple[str, Figures]
"""The code of an explanation in `analyze.wording.report`, and its figures."""


def disagreements(
    diagnosis: Diagnosis,
    blame: Mapping[str, float],
    lowest: str | None,
    changes: str | None,
    workers: int,
    others: Sequence[str] = (),
) -> tuple[Disagreement, ...]:
    """Return why other parts of a report do not name its cause; empty unless the run is starved.

    Args:
        diagnosis: The verdict of the run.
        blame: Seconds of stall by cause, largest first.
        lowest: The resource with the lowest ceiling, if any is known.
        changes: The setting that the first recommendation changes, if there is one.
        workers: Number of workers of the loader.
        others: Names of other loaders for which the loop waits.
    """
    cause = _cause(diagnosis, blame)
    if cause is None:
        return ()
    of_others = tuple(_by_other_loaders(blame, others))
    if cause == OTHER_LOADERS:
        return of_others
    return (
        *of_others,
        *_by_unknown(blame), *_by_ceiling(cause, lowest, workers), *_by_advice(cause, changes)
    )  # fmt: skip


def worth_differs(
    diagnosis: Diagnosis, blame: Mapping[str, float], worth: Mapping[str, Worth]
) -> tuple[Disagreement, ...]:
    """Return why another cause is worth more than the first; empty where none is, and unless the
    run is starved. Both gains are of the same simulated run, so only the model's error counts."""
    cause = _cause(diagnosis, blame)
    if cause is None or cause not in worth:
        return ()
    best = max(worth, key=lambda name: worth[name].cheaper.share)
    own, most = worth[cause].cheaper.share, worth[best].cheaper.share
    if best == cause or most < own + _LEAST_DIFFERENCE:
        return ()
    figures = {"cause": cause, "best": best}
    if most - own <= NORMAL_90 * MODEL_ERROR * hypot(own, most):
        return (("worth-the-same", figures),)
    return (("worth-more-on-cores" if WORKER_CPU in (cause, best) else "worth-more", figures),)


def same(cause: str, other: str) -> bool:
    """Return whether both names mean that the same resource is short."""
    return cause == other or any(cause in group and other in group for group in _SYNONYMS)


def _cause(diagnosis: Diagnosis, blame: Mapping[str, float]) -> str | None:
    """Return the first known cause of a starved run."""
    starved = diagnosis.verdict == "starved"
    return next((name for name in blame if name != UNKNOWN), None) if starved else None


def _by_other_loaders(blame: Mapping[str, float], names: Sequence[str]) -> Iterator[Disagreement]:
    share = blame.get(OTHER_LOADERS, 0.0) / sum(blame.values())
    if share >= MINOR_SHARE:
        yield "other-loaders", {"share": share, "others": ", ".join(names)}


def _by_unknown(blame: Mapping[str, float]) -> Iterator[Disagreement]:
    if next(iter(blame)) == UNKNOWN:
        yield "unknown-cause", {"share": blame[UNKNOWN] / sum(blame.values())}


def _by_ceiling(cause: str, lowest: str | None, workers: int) -> Iterator[Disagreement]:
    if lowest is None or same(cause, lowest):
        return
    figures = {"cause": cause, "lowest": lowest}
    if lowest == "accelerator":
        yield "late-now-and-then" if workers else "times-add-up", figures
    elif cause == WORKER_CPU:
        yield "others-at-the-cores", figures
    else:
        yield "other-ceiling", figures


def _by_advice(cause: str, changes: str | None) -> Iterator[Disagreement]:
    if changes is None or cause in (changes, PIPELINE):  # its advice names the stage
        return
    if changes == "persistent_workers":
        yield "start-up-first", {"cause": cause}
    elif cause not in (name for part in changes.split(" + ") for name in _FIXED_BY.get(part, ())):
        yield "other-advice", {"cause": cause, "changes": changes}
