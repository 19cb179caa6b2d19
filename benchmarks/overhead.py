"""Measures what profiling costs, by pipeprof and by others; a second plain arm is the control.

    python -m benchmarks.overhead [--limit SECONDS] [--only TEXT] [--no-peers] [--no-bars]

Plain and profiled loaders alternate, in random order, until the difference between both plain arms
is small enough, or the time is up. Exit code 1 when a bar is missed.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np
import torch

import pipeprof
from benchmarks.overhead_arms import PEER_STEPS, Arm, Ours, TorchProfiler, traceml
from benchmarks.overhead_cases import Case, cases
from benchmarks.overhead_session import Session, hold_session
from benchmarks.overhead_small import print_small_costs
from benchmarks.overhead_stats import ENOUGH, Estimate, Floats, Verdict, added, judge, mixed, say
from benchmarks.overhead_switched import Mode, hold_switched_session
from pipeprof.loaders.instrument.sampling import COST_S, INLINE_COST_S, recorded_per_s
from pipeprof.units import format_duration

PLAIN, AGAIN = Arm("plain"), Arm("plain again")
OURS, CLOCKING = Ours("pipeprof, watching"), Ours("pipeprof, clocking")
_MODES = {OURS: Mode.WATCHING, CLOCKING: Mode.CLOCKING, PLAIN: Mode.OFF, AGAIN: Mode.OFF}
_PEER_SHARE = 0.05
"""Share of a case's time for each other profiler. No bar depends on their exactness."""
_MEASURES = {"wall_s": "wall", "cpu_s": "CPU"}


@dataclass(frozen=True)
class Series:
    """Sessions of one case with the same arms."""

    case: Case
    arms: Sequence[Arm]
    sessions: list[Session]

    def hold_another(self) -> None:
        seed = len(self.sessions)
        if OURS in self.arms:
            session = hold_switched_session(
                self.case, {arm: _MODES[arm] for arm in self.arms}, seed
            )
        else:
            session = hold_session(self.case, self.arms, self.case.rounds, seed)
        self.sessions.append(session)

    def of(self, arm: Arm, measure: str) -> Floats:
        return np.array(
            [[getattr(turn[arm.name], measure) for turn in session] for session in self.sessions]
        )

    def cost(self, arm: Arm, measure: str) -> Estimate:
        """Return the cost above plain, or above the mean of both plain arms."""
        plain = [self.of(one, measure) for one in (PLAIN, AGAIN) if one in self.arms]
        return added(self.of(arm, measure), *plain, relative=self.case.relative)

    def watched(self) -> float:
        """Return the share of batches that is recorded in full at the speed of this loader."""
        cost_s = COST_S if self.case.workers else INLINE_COST_S
        return min(1.0, float(np.median(self.of(PLAIN, "wall_s"))) * recorded_per_s(cost_s))

    def in_use(self, measure: str) -> Estimate:
        """Return the cost of pipeprof: the mean of watching and clocking by their shares in use."""
        spent = mixed(
            self.watched(), self.of(OURS, measure), self.of(CLOCKING, measure), self.case.relative
        )
        plain, again = self.of(PLAIN, measure), self.of(AGAIN, measure)
        return added(spent, plain, again, relative=self.case.relative)

    def control(self, measure: str) -> Estimate:
        plain, again = self.of(PLAIN, measure), self.of(AGAIN, measure)
        return added(again, plain, relative=self.case.relative)

    def is_quiet(self) -> bool:
        return all(self.control(name).within(self.case.quiet) for name in self.case.judged)


def measure_ours(case: Case, end: float) -> Series:
    series = Series(case, (OURS, CLOCKING, PLAIN, AGAIN), [])
    while not series.sessions or (perf_counter() < end and not series.is_quiet()):
        series.hold_another()
    return series


def measure_peer(case: Case, peer: Arm, end: float) -> Series:
    batches = min(case.batches, PEER_STEPS // 8)
    rounds = min(case.rounds, PEER_STEPS // batches - 2)
    series = Series(replace(case, batches=batches, rounds=rounds), (PLAIN, peer), [])
    while not series.sessions or perf_counter() < end:
        series.hold_another()
    return series


def run_case(case: Case, peers: Sequence[Arm], seconds: float) -> list[tuple[Verdict, str]]:
    """Measure, print a table, and return the verdicts."""
    start = perf_counter()
    print(f"\n{case.name}")
    print(f"  {'per batch':<20}{'wall':>9}   {'against plain':<32}{'CPU':>9}   against plain")
    for count, peer in enumerate(peers, start=1):
        try:
            theirs = measure_peer(case, peer, start + count * _PEER_SHARE * seconds)
        except Exception as error:  # any error of another profiler
            print(f"  {peer.name:<20}NOT MEASURED ({type(error).__name__}: {error})")
            continue
        print_row(peer, theirs)
    ours = measure_ours(case, start + seconds)
    for arm in ours.arms:
        print_row(arm, ours)
    said = "".join(f"{'':>9}   {say(ours.in_use(name), case.relative):<32}" for name in _MEASURES)
    print(f"  {'pipeprof, in use':<20}{said.rstrip()}  ({ours.watched():.0%} watched)")
    sessions = len(ours.sessions)
    print(
        f"  {sessions * case.rounds:,} rounds of {case.batches:,} batches in {sessions} sessions; "
        f"with the peers {format_duration(perf_counter() - start)}"
    )
    judged = [verdict(ours, measure, ours.in_use(measure), case.most) for measure in case.judged]
    if case.most_whole is not None:
        judged += [
            verdict(ours, measure, ours.cost(OURS, measure), case.most_whole, ", whole")
            for measure in case.judged
        ]
    return judged


def print_row(arm: Arm, series: Series) -> None:
    cells = ""
    for measure in _MEASURES:
        spent = format_duration(float(np.median(series.of(arm, measure))))
        cells += f"{spent:>9}   {said_of(arm, series, measure):<32}"
    print(f"  {arm.name:<20}{cells.rstrip()}", flush=True)


def said_of(arm: Arm, series: Series, measure: str) -> str:
    if arm is PLAIN:
        return ""
    return say(
        series.control(measure) if arm is AGAIN else series.cost(arm, measure), series.case.relative
    )


def verdict(
    series: Series, measure: str, cost: Estimate, most: float, which: str = ""
) -> tuple[Verdict, str]:
    case, control = series.case, series.control(measure)
    scale, unit = (100, "%") if case.relative else (1e6, "µs")
    what = f"{case.name}{which}: {_MEASURES[measure]}, at most {most * scale:+g} {unit}"
    judged = judge(cost, control, most, case.quiet)
    if judged != "not judged":
        return judged, f"{what}: {say(cost, case.relative)}"
    return judged, (
        f"{what}: plain against plain is {say(control, case.relative)}, not within "
        f"±{case.quiet * scale:g} {unit}; give it more time, or a quieter machine"
    )


def print_machine() -> None:
    print(
        f"pipeprof {pipeprof.__version__}, torch {torch.__version__}, "
        f"Python {platform.python_version()}, {platform.system()} {platform.release()}, "
        f"{os.cpu_count()} cores; load average at the start {os.getloadavg()[0]:.1f}\n"
        "Times are medians of all rounds, differences means without the oddest tenth; in brackets "
        "95 % intervals, unknown where fewer than "
        f"{ENOUGH} sessions were held."
    )


def _peers(stack: ExitStack) -> list[Arm]:
    """Return the other profilers, which stay installed until ``stack`` is closed."""
    peers: list[Arm] = [TorchProfiler("torch.profiler")]
    try:
        peers += stack.enter_context(traceml())
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"\ntraceml-ai: NOT MEASURED ({error})")
    return peers


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.overhead", description=__doc__)
    parser.add_argument("--limit", type=float, default=480.0, metavar="SECONDS")
    parser.add_argument("--only", default="", metavar="TEXT", help="loaders named so")
    parser.add_argument("--no-peers", action="store_true", help="pipeprof alone")
    parser.add_argument("--no-bars", action="store_true", help="judge, but exit with 0")
    options = parser.parse_args()
    end = perf_counter() + options.limit
    print_machine()
    print_small_costs()
    verdicts: list[tuple[Verdict, str]] = []
    with ExitStack() as stack:
        peers = [] if options.no_peers else _peers(stack)
        chosen = [case for case in cases() if options.only in case.name]
        share_left = sum(case.time_share for case in chosen)
        for case in chosen:
            seconds = (end - perf_counter()) * case.time_share / share_left
            share_left -= case.time_share
            verdicts += run_case(case, peers, seconds)
    print("\nbars")
    for judged, line in verdicts:
        print(f"  {judged:<12}{line}")
    missed = any(judged == "MISSED" for judged, _ in verdicts)
    return int(missed and not options.no_bars)


if __name__ == "__main__":
    sys.exit(main())
