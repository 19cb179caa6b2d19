"""How wrong the limits are that a probe from many hosts finds, on clusters drawn at random.

    python -m benchmarks.probe_hosts [--clusters 12] [--seed N]

A cluster has 2 to 6 hosts behind links of one rate, and an S3 server behind another link, so that
the knee lies at 0.7 to 1.5 times the hosts. One host in three clusters is slower. Each host is a
network namespace of this machine, with a real process of `pipeprof probe` (root, Linux).
"""

from __future__ import annotations

import random
import secrets
import sys
from argparse import ArgumentParser
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from tests.lab.hosts import payload, probed_from

BAR = 0.05
"""Most relative error of either limit."""


@dataclass(frozen=True)
class Cluster:
    """Rates in Mbit/s on the wire."""

    hosts: tuple[float, ...]
    server: float
    host: float
    """The rate of an ordinary host."""

    @property
    def slow(self) -> list[int]:
        return [number for number, rate in enumerate(self.hosts) if rate < self.host]

    @property
    def reached(self) -> bool | None:
        """Whether all hosts together reach the server's rate; ``None`` where it is too close."""
        share = sum(self.hosts) / self.server
        return None if 1.0 < share < 1.25 else share > 1.0


def draw(seed: int) -> Cluster:
    chance = random.Random(seed)
    count, host = chance.randint(2, 6), chance.uniform(15.0, 40.0)
    rates = [host] * count
    if count > 2 and chance.random() < 1 / 3:
        rates[chance.randrange(count)] *= chance.uniform(0.2, 0.6)
    return Cluster(tuple(rates), host * count * chance.uniform(0.3, 1.5), host)


def judge(cluster: Cluster, found: dict[str, Any]) -> tuple[list[float], list[bool], list[str]]:
    """Return the relative errors, whether each interval holds the truth, and what was wrong."""
    curve, wrong = found["bandwidth"], []
    # a host cannot get more than the server gives
    truths = {"per_host": min(payload(cluster.host), payload(cluster.server))}
    if cluster.reached is not None and cluster.reached != bool(curve["total"]):
        wrong.append("limit of the server missed" if cluster.reached else "limit invented")
    elif curve["total"] and cluster.reached:
        truths["total"] = payload(cluster.server)
    names = [found["names"][number] for number in cluster.slow]
    if names != [each["host"] for each in found["slow"]]:
        wrong.append(f"slow hosts {[each['host'] for each in found['slow']]}, not {names}")
    errors = [curve[name]["value"] / truth - 1 for name, truth in truths.items()]
    held = [curve[name]["low"] <= truth <= curve[name]["high"] for name, truth in truths.items()]
    return errors, held, wrong


def main() -> int:
    parser = ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clusters", type=int, default=12)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    arguments = parser.parse_args()
    errors, held, mistakes = list[float](), list[bool](), 0
    print(f"{'seed':>8}  {'hosts':>5}  {'Mbit/s a host':>13}  {'server':>6}  {'errors':16}  wrong")
    for number in range(arguments.clusters):
        seed = arguments.seed + number
        cluster = draw(seed)
        with TemporaryDirectory() as folder:
            found = probed_from(cluster.hosts, cluster.server, Path(folder))
        own, holds, wrong = judge(cluster, found)
        errors, held, mistakes = errors + own, held + holds, mistakes + bool(wrong)
        slow = f" ({len(cluster.slow)} slow)" if cluster.slow else ""
        shown = ", ".join(f"{each:+.1%}" for each in own)
        print(
            f"{seed:>8}  {len(cluster.hosts):>5}  {f'{cluster.host:.1f}{slow}':>13}  "
            f"{cluster.server:6.1f}  {shown:16}  {'; '.join(wrong)}",
            flush=True,
        )
    sizes = sorted(map(abs, errors))
    print(
        f"{arguments.clusters} clusters, {len(errors)} limits: error {median(sizes):.1%} in the "
        f"median, at most {sizes[-1]:.1%} (bar {BAR:.0%}); {sum(held)} intervals hold the truth; "
        f"{mistakes} clusters with another mistake"
    )
    return int(sizes[-1] > BAR or mistakes > 0)


if __name__ == "__main__":
    sys.exit(main())
