"""Compares clients of S3: requests/s of small ranges, MB/s of large ones, CPU time per request.

    python -m benchmarks.s3_clients [rounds]

Each client reads random ranges of one object through `pipeprof.storage`, from several threads at
once, for a fixed time. Each round runs all clients in random order; the first client runs twice, as
its own control. One server has the object in memory and costs next to nothing. The other is
rclone's, a complete server of S3. It answers ranges with 200, which obstore does not accept.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

from pipeprof.storage import ObjectInfo, Store, open_store
from pipeprof.storage.s3.clients.base import CLIENTS, DEFAULT
from tests.s3.server import KEY, SECRET, serving

ROUNDS = 5
TURN_S = 0.5
OBJECT = 64 * 2**20
SMALL, LARGE = 4 * 2**10, 8 * 2**20
IN_FLIGHT = {SMALL: (1, 4, 16, 64), LARGE: (1, 4, 16)}
AGAIN = f"{DEFAULT} again"


@dataclass(frozen=True)
class Turn:
    """The rates of one client in its fixed time."""

    requests_per_s: float
    cpu_s: float
    """CPU time of this process per request."""


def turn(store: Store, item: ObjectInfo, size: int, in_flight: int) -> Turn:
    """Time a client for `TURN_S`, and until the requests in flight at that time have ended."""
    done = [0] * in_flight
    store.read(item, [(0, size)])
    began, cpu_s = perf_counter(), process_time()
    end = began + TURN_S

    def ask(number: int) -> None:
        chance = random.Random(number)
        while perf_counter() < end:
            store.read(item, [(chance.randrange(OBJECT // size) * size, size)])
            done[number] += 1

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(in_flight)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    count = sum(done)
    return Turn(count / (perf_counter() - began), (process_time() - cpu_s) / count)


def compare(endpoint: str, clients: tuple[str, ...], rounds: int) -> None:
    """Print a table for each size of range."""
    options = {"endpoint_url": endpoint, "key": KEY, "secret": SECRET, "max_concurrency": 64}
    stores = {
        name: open_store("s3://bucket", {**options, "s3_client": name.removesuffix(" again")})
        for name in clients
    }
    item = ObjectInfo("s3://bucket/x.bin", "bucket/x.bin", OBJECT)
    order = random.Random(0)
    for size, levels in IN_FLIGHT.items():
        unit = "requests/s of 4 KiB" if size == SMALL else "MB/s by 8 MiB"
        print(f"\n{unit:<20}  in flight   {'':<24}  against {clients[0]}        CPU a request")
        best: list[tuple[float, str, int]] = []
        for in_flight in levels:
            turns: dict[str, list[Turn]] = {name: [] for name in clients}
            for _ in range(rounds):
                for name in order.sample(clients, len(clients)):
                    turns[name].append(turn(stores[name], item, size, in_flight))
            for name in clients:
                _print(name, in_flight, size, turns[name], turns[clients[0]])
                best.append((median(t.requests_per_s for t in turns[name]), name, in_flight))
        print("  best: {1}, with {2} in flight".format(*max(best)))


def _print(name: str, in_flight: int, size: int, turns: list[Turn], base: list[Turn]) -> None:
    scale = 1 if size == SMALL else size / 1e6
    rates = [each.requests_per_s * scale for each in turns]
    ratios = [
        each.requests_per_s / other.requests_per_s for each, other in zip(turns, base, strict=True)
    ]
    cpu = [each.cpu_s * 1e6 for each in turns]
    print(
        f"  {name:<18}  {in_flight:>9}   {_spread(rates, ',.0f'):<24}  {_spread(ratios, '.2f'):<20}"
        f"  {_spread(cpu, ',.0f')} µs",
        flush=True,
    )


def _spread(values: list[float], form: str) -> str:
    return f"{median(values):{form}} ({min(values):{form}}–{max(values):{form}})"


@contextmanager
def in_memory() -> Iterator[str]:
    """Yield the endpoint of a server that has the object in memory."""
    command = [sys.executable, "-m", "benchmarks.s3_memory", str(OBJECT)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
    finally:
        process.terminate()
        process.communicate()


@contextmanager
def of_rclone() -> Iterator[str]:
    """Yield the endpoint of rclone, which here computes no checksum of the object per range."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "root" / "bucket").mkdir(parents=True)
        (Path(folder) / "root" / "bucket" / "x.bin").write_bytes(os.urandom(OBJECT))
        with serving(
            Path(folder) / "root", Path(folder) / "log", more=["--etag-hash", ""]
        ) as server:
            yield server.endpoint


def main(rounds: int) -> None:
    print(f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}; {rounds} rounds of")
    print(f"{TURN_S} s a client: median (least–most); ratios are within a round")
    print("\nA server in memory")
    with in_memory() as endpoint:
        compare(endpoint, (DEFAULT, AGAIN, *(name for name in CLIENTS if name != DEFAULT)), rounds)
    print("\nrclone's server")
    with of_rclone() as endpoint:
        compare(endpoint, ("pyarrow", "pyarrow again", "s3fs"), rounds)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS)
