"""Whether the parts of a report name the same thing: its cause, what each cost is worth, the lowest
ceiling and the first advice. Where they do not, why not, as codes with figures.

Each part answers a question of its own. The cause is what the accelerator waited for; worth is what
a cut would bring; a ceiling is what one resource allows if nothing else holds it up; advice is the
first setting that helps. Mostly the answers agree, and a reader who sees that they do not is told
which to believe.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pipeprof.analyze.advice.proposal import Figures
from pipeprof.analyze.profile.stall_attribution import (
    DISPATCH,
    MAIN,
    PIN,
    SAMPLER,
    TRANSFER,
    UNKNOWN,
    WORKER_CPU,
)
from pipeprof.analyze.profile.worker_activity import STAGES
from pipeprof.model import Diagnosis, Worth

_FETCHING = frozenset((*STAGES, DISPATCH, "workers", "storage-bandwidth", "storage-latency",
                     "storage-client"))  # fmt: skip
_CORES = frozenset((WORKER_CPU,))
_HANDING_OVER = frozenset((TRANSFER, MAIN, PIN, SAMPLER, "h2d"))
_GROUPS = (_FETCHING, _CORES | {"workers"}, _HANDING_OVER)
"""Names of causes and ceilings that mean the same."""
_CURES: dict[str, frozenset[str]] = {
    "num_workers": _FETCHING | _CORES | _HANDING_OVER,
    "prefetch_factor": _FETCHING,
    "in_order": _FETCHING,
    "storage bandwidth": _FETCHING,
    "requests under way": _FETCHING,
    "cores": _CORES | _FETCHING,
    "worker_init_fn": _CORES | _FETCHING,
    "collate_fn": _HANDING_OVER,
    "batch_size": _HANDING_OVER,
    "sampler": _HANDING_OVER,
    "pin_memory": _HANDING_OVER,
}
"""Setting → what it cures."""


Disagreement = tuple[str, Figures]
"""A code, and its figures."""


def disagreements(
    diagnosis: Diagnosis,
    blame: Mapping[str, float],
    worth: Mapping[str, Worth],
    lowest: str | None,
    changes: str | None,
    workers: int,
) -> tuple[Disagreement, ...]:
    """Of a starved run.

    Args:
        diagnosis: Its verdict.
        blame: Seconds of stall by cause, largest first.
        worth: What each cause is worth.
        lowest: The resource with the lowest ceiling.
        changes: The setting that the first advice is to change.
        workers: Of the loader.
    """
    cause = next((name for name in blame if name != UNKNOWN), None)
    if diagnosis.verdict != "starved" or cause is None:
        return ()
    found = [
        *_of_unknown(blame), *_of_worth(cause, worth), *_of_ceiling(cause, lowest, workers),
        *_of_advice(cause, changes),
    ]  # fmt: skip
    return tuple(found)


def same(cause: str, other: str) -> bool:
    """Whether both names mean that the same is short."""
    return cause == other or any(cause in group and other in group for group in _GROUPS)


def _of_unknown(blame: Mapping[str, float]) -> Iterator[Disagreement]:
    if next(iter(blame)) == UNKNOWN:
        yield "unknown-cause", {"share": blame[UNKNOWN] / sum(blame.values())}


def _of_worth(cause: str, worth: Mapping[str, Worth]) -> Iterator[Disagreement]:
    if cause not in worth:
        return
    best = max(worth, key=lambda name: worth[name].cheaper.share)
    first, most = worth[cause].cheaper, worth[best].cheaper
    if best == cause or most.share < first.share + 0.01:
        return
    figures = {"cause": cause, "best": best}
    if most.interval[0] <= first.interval[1]:
        yield "worth-the-same", figures
    elif WORKER_CPU in (cause, best):
        yield "worth-more-on-cores", figures
    else:
        yield "worth-more", figures


def _of_ceiling(cause: str, lowest: str | None, workers: int) -> Iterator[Disagreement]:
    if lowest is None or same(cause, lowest):
        return
    figures = {"cause": cause, "lowest": lowest}
    if lowest == "accelerator":
        yield "late-now-and-then" if workers else "times-add-up", figures
    elif cause == WORKER_CPU:
        yield "others-at-the-cores", figures
    else:
        yield "other-ceiling", figures


def _of_advice(cause: str, changes: str | None) -> Iterator[Disagreement]:
    if changes is None or changes == cause:
        return
    if cause not in (name for part in changes.split(" + ") for name in _CURES.get(part, ())):
        yield "other-advice", {"cause": cause, "changes": changes}
