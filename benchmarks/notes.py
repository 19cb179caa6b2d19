"""Measures the CPU time to note a request to storage, with and without a profiler.

Run with ``python -m benchmarks.notes``. The control calls a function that does nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from math import nan
from statistics import median
from time import process_time

from pipeprof.measure.request_counts import RequestCounts
from pipeprof.measure.requests import StoreTime, begin_noting, end_noting, note_request
from pipeprof.measure.stage_timer import Tally

_ROUNDS, _CALLS = 31, 5_000


def main() -> None:
    counts, tally = RequestCounts(), Tally(note_requests=True)
    print(f"µs of CPU a call, median of {_ROUNDS} rounds of {_CALLS:,} calls (fastest – slowest)")
    show("control: a function that does nothing", nothing)
    show("note_request, nobody profiles", note)
    begin_noting()
    show("note_request, profiled", note, after=counts.count_pending)
    for requests in (1, 16, 256):
        show(f"noted and counted, {requests} a batch", noted(counts, requests), requests)
    end_noting()
    show("the client's CPU of a batch's read", lambda: StoreTime(tally).end())


def nothing() -> None:
    pass


def note() -> None:
    note_request(1.0, nan, 1.5, 4096)


def noted(counts: RequestCounts, requests: int) -> Callable[[], None]:
    def batch() -> None:
        for _ in range(requests):
            note_request(1.0, nan, 1.5, 4096)
        counts.count_pending()

    return batch


def show(
    name: str, call: Callable[[], None], requests: int = 1, after: Callable[[], None] = nothing
) -> None:
    took = []
    calls = _CALLS // requests
    for _ in range(_ROUNDS):
        start = process_time()
        for _ in range(calls):
            call()
        took.append((process_time() - start) / calls / requests * 1e6)
        after()
    print(f"{name:40} {median(took):6.2f}  ({min(took):.2f} – {max(took):.2f})")


if __name__ == "__main__":
    main()
