"""Measures the CPU time that a live view adds to the training thread, against a loop without it.

Each loader has one worker and a batch every 5 ms; its step sleeps or computes. The loaders of all
arms exist at once, and their blocks alternate in random order. A second loop without a view is the
control. Run with ``make bench-live``; ``python -m benchmarks.live ROUNDS`` sets the rounds.
"""

from __future__ import annotations

import fcntl
import os
import pty
import random
import struct
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

import pipeprof
from benchmarks.overhead_stats import Estimate, estimate, judge
from pipeprof.loaders.live.live_pass import LiveLoader
from pipeprof.loaders.live.view import Live
from pipeprof.units import format_duration

ROUNDS = 12
BLOCK = 400
"""Batches per block: about two seconds, in which the view is drawn once or twice."""
STEP_S = 0.005
MOST, QUIET = 0.005, 0.0025
"""Shares of the time: the bar, and the limit of the control's interval for it to be evaluated."""


class Endless(Dataset[Any]):
    def __len__(self) -> int:
        return 10**9

    def __getitem__(self, index: int) -> int:
        return index  # to send a tensor from a worker costs ten times what is measured


@dataclass(frozen=True)
class Spent:
    """Times per batch."""

    cpu_s: float
    """CPU time of the training thread."""
    wall_s: float


class Arm:
    """A loop over its own profiled loader, with or without a live view."""

    def __init__(self, step: Callable[[], object], live: Live | None) -> None:
        loader = pipeprof.wrap(DataLoader(Endless(), None, num_workers=1))
        self._profiler = loader._profiler
        self._profiler.live = LiveLoader("train", [live]) if live is not None else None
        self._batches: Iterator[Any] = iter(loader)
        self._step = step
        self.block()

    @property
    def clocked_s(self) -> float:
        """Seconds spent on the live view, by its own clock."""
        return self._profiler.live_s

    def block(self) -> Spent:
        cpu_s, start = time.thread_time(), time.perf_counter()
        for _ in islice(self._batches, BLOCK):
            self._step()
        wall_s = time.perf_counter() - start
        return Spent((time.thread_time() - cpu_s) / BLOCK, wall_s / BLOCK)


def compute() -> Callable[[], object]:
    """Return a step that computes for about `STEP_S` and evicts our code from the CPU's caches."""
    values = np.random.default_rng(0).standard_normal(1 << 18).astype(np.float32)
    start = time.perf_counter()
    for _ in range(50):
        np.tanh(values)
    repeats = max(1, round(50 * STEP_S / (time.perf_counter() - start)))

    def step() -> None:
        for _ in range(repeats):
            np.tanh(values)

    return step


def a_terminal() -> int:
    """Return the descriptor of a terminal whose output is read by a thread."""
    reader, device = pty.openpty()
    fcntl.ioctl(reader, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))

    def drain() -> None:
        with suppress(OSError):  # the other side is closed
            while os.read(reader, 1 << 16):
                pass

    threading.Thread(target=drain, daemon=True).start()
    return device


def measure(name: str, step: Callable[[], object], rounds: int, file: Any) -> bool:
    """Print the result, and return whether the bar is met, as far as this machine can tell."""
    live = Live(file)
    arms = {"plain": Arm(step, None), "again": Arm(step, None), "live": Arm(step, live)}
    spent_s, chance = arms["live"].clocked_s, random.Random(0)
    found: dict[str, list[Spent]] = {each: [] for each in arms}
    for _ in range(rounds):
        for each in chance.sample(list(arms), len(arms)):
            found[each].append(arms[each].block())
    plain, again, with_view = (np.array([b.cpu_s for b in found[each]]) for each in arms)
    wall_s = np.array([block.wall_s for block in found["plain"]])
    # the blocks of a round are consecutive, so each round is a sample of its own
    cost = estimate(((with_view - (plain + again) / 2) / wall_s)[:, None])
    control = estimate(((again - plain) / wall_s)[:, None])
    shown_s = sum(block.wall_s for block in found["live"]) * BLOCK
    clocked = (arms["live"].clocked_s - spent_s) / shown_s
    print(f"{name:<12}{np.median(plain / wall_s):8.2%}   {said(cost):<26}{said(control):<26}"
          f"{clocked:8.3%}")  # fmt: skip
    outside = judge(cost, control, MOST, QUIET)
    print(f"{'':<12}bar {MOST:.1%}: from outside {outside}, "
          f"clocked {'met' if clocked <= MOST else 'MISSED'}")  # fmt: skip
    return outside != "MISSED" and clocked <= MOST


def said(found: Estimate) -> str:
    return f"{found.middle:+.2%} [{found.low:+.2%}, {found.high:+.2%}]"


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    os.environ["TERM"] = "xterm-256color"
    torch.set_num_threads(1)
    print(f"CPU time of the training thread, as a share of the time; {rounds} rounds of {BLOCK} "
          f"batches, {format_duration(STEP_S)} each; median [95 %]")  # fmt: skip
    print(f"{'a step that':<12}{'without':>8}   {'a live view adds':<26}{'control':<26}"
          f"{'clocked':>8}")  # fmt: skip
    steps = {"sleeps": lambda: time.sleep(STEP_S), "computes": compute()}
    with open(a_terminal(), "w") as terminal:
        good = [measure(name, step, rounds, terminal) for name, step in steps.items()]
    return int(not all(good))


if __name__ == "__main__":
    sys.exit(main())
