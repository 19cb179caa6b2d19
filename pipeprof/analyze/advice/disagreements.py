"""Whether the parts of a report name the same thing: its cause, what each cost is worth, the lowest
ceiling and the first advice. Where they do not, why not, in words.

Each part answers a question of its own. The cause is what the accelerator waited for; worth is what
a cut would bring; a ceiling is what one resource allows if nothing else holds it up; advice is the
first setting that helps. Mostly the answers agree, and a reader who sees that they do not is told
which to believe.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

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
from pipeprof.model import Ceiling, Diagnosis, Recommendation, Worth
from pipeprof.units import percent

_MAKING = frozenset((*STAGES, DISPATCH, "workers", "storage-bandwidth", "storage-latency",
                     "storage-client"))  # fmt: skip
_CORES = frozenset((WORKER_CPU,))
_HANDING_OVER = frozenset((TRANSFER, MAIN, PIN, SAMPLER, "h2d"))
_GROUPS = (_MAKING, _CORES | {"workers"}, _HANDING_OVER)
"""Names of causes and ceilings that mean the same."""
_CURES: dict[str, frozenset[str]] = {
    "num_workers": _MAKING | _CORES | _HANDING_OVER,
    "prefetch_factor": _MAKING,
    "in_order": _MAKING,
    "storage bandwidth": _MAKING,
    "requests under way": _MAKING,
    "cores": _CORES | _MAKING,
    "worker_init_fn": _CORES | _MAKING,
    "collate_fn": _HANDING_OVER,
    "batch_size": _HANDING_OVER,
    "sampler": _HANDING_OVER,
    "pin_memory": _HANDING_OVER,
}
"""Setting → what it cures."""


def disagreements(
    diagnosis: Diagnosis,
    blame: Mapping[str, float],
    worth: Mapping[str, Worth],
    ceilings: Mapping[str, Ceiling],
    advice: Sequence[Recommendation],
    workers: int,
) -> tuple[str, ...]:
    """Of a starved run with so many ``workers``; each a sentence or two."""
    cause = next((name for name in blame if name != UNKNOWN), None)
    if diagnosis.verdict != "starved" or cause is None:
        return ()
    found = [
        *_of_unknown(blame), *_of_worth(cause, worth), *_of_ceiling(cause, ceilings, workers),
        *_of_advice(cause, advice),
    ]  # fmt: skip
    return tuple(found)


def same(cause: str, other: str) -> bool:
    """Whether both names mean that the same is short."""
    return cause == other or any(cause in group and other in group for group in _GROUPS)


def _of_unknown(blame: Mapping[str, float]) -> Iterator[str]:
    if next(iter(blame)) == UNKNOWN:
        share = percent(blame[UNKNOWN] / sum(blame.values()))
        yield (
            f"No record tells what {share} of the wait was for: what is named here is of the rest. "
            "A longer run leaves less unknown."
        )


def _of_worth(cause: str, worth: Mapping[str, Worth]) -> Iterator[str]:
    if cause not in worth:
        return
    best = max(worth, key=lambda name: worth[name].cheaper.share)
    first, most = worth[cause].cheaper, worth[best].cheaper
    if best == cause or most.share < first.share + 0.01:
        return
    if most.interval[0] <= first.interval[1]:
        yield f"{cause} and {best} are worth the same, as far as one run tells."
    elif WORKER_CPU in (cause, best):
        yield (
            f"More is gained from {best} than from {cause}, which was waited for longer: workers "
            "compete for cores, so whatever computes less, in any stage, shortens the wait of all."
        )
    else:
        yield (
            f"More is gained from {best} than from {cause}, which was waited for longer: while one "
            "batch is waited for, others are made, and what they have in common limits all of them."
        )


def _of_ceiling(cause: str, ceilings: Mapping[str, Ceiling], workers: int) -> Iterator[str]:
    lowest = next(iter(ceilings), None)
    if lowest is None or same(cause, lowest):
        return
    if lowest == "accelerator" and not workers:
        yield (
            "No ceiling is below the accelerator's, and yet it waits: without workers a batch is "
            "made while the accelerator stands still, so the times of both add up."
        )
    elif lowest == "accelerator":
        yield (
            f"No ceiling is below the accelerator's: on average the loader keeps up. It is starved "
            f"because batches are late now and then, by {cause}."
        )
    elif cause == WORKER_CPU:
        yield (
            f"Workers wait for cores although the lowest ceiling is {lowest}: ceilings count what "
            "this job computes, and other processes are at the cores, too, or workers want them "
            "all at once."
        )
    else:
        yield (
            f"The lowest ceiling is {lowest}, the cause is {cause}: a ceiling is what one part "
            "allows if nothing else holds it up, on average; the cause is what really was waited "
            "for. Act on the cause."
        )


def _of_advice(cause: str, advice: Sequence[Recommendation]) -> Iterator[str]:
    first = next(iter(advice), None)
    if first is None or first.setting == cause:
        return
    cured = [name for part in first.setting.split(" + ") for name in _CURES.get(part, ())]
    if cause not in cured:
        yield (
            f"The first advice is about {first.setting}, not {cause}: no setting of the loader "
            f"makes {cause} cheaper."
        )
