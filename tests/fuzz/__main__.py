"""`make fuzz`: damage inputs for a stated time, and keep each that is neither read nor refused.

    python -m tests.fuzz [--seconds 600] [--seed 1] [TARGET …]

The same seed makes the same inputs. A found input is saved in `tests/fuzz/found/`, under the name
of its target; `tests/fuzz/test_fuzz.py` tries it from then on.
"""

from __future__ import annotations

import argparse
import sys
import time

from tests.fuzz.run import Tally, fuzz, keep
from tests.fuzz.targets import TARGETS

_TURN_S = 5.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    asked = parser.parse_args()
    if unknown := set(asked.targets) - set(TARGETS):
        parser.error(f"{', '.join(unknown)}: not a target; there are {', '.join(TARGETS)}")
    tallies = {name: Tally() for name in asked.targets or TARGETS}
    print(f"seed {asked.seed}, {asked.seconds:g} s over {', '.join(tallies)}", flush=True)
    turn_s = min(_TURN_S, asked.seconds / len(tallies))
    end = time.monotonic() + asked.seconds
    while time.monotonic() < end:
        for name, tally in tallies.items():
            known = set(tally.faults)
            fuzz(TARGETS[name], asked.seed, tally, seconds=turn_s)
            for data in tally.faults.keys() - known:
                outcome = tally.faults[data]
                path = keep(TARGETS[name], data)
                print(f"{name}: {outcome.kind}: {outcome.detail}\n  {path}", flush=True)
    for name, tally in tallies.items():
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in tally.counts.most_common())
        print(f"{name:<16}{tally.inputs:>10,} inputs: {kinds}")
    return 1 if any(tally.faults for tally in tallies.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
