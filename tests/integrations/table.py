"""Print stages and verdict of each framework's training, against the clock of its script.

    python -m tests.integrations.table

Run with ``make bench-frameworks``.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.integrations.environments import Answer, plain, train, train_under_run
from tests.integrations.test_frameworks import SCRIPTS, TRAINERS, WHOLE, pauses
from tests.integrations.test_other_loaders import KINDS


def rows() -> Iterator[tuple[str, str, Answer, Answer]]:
    """Yield the training, how it was profiled, and what it said with and without pipeprof."""
    for script in SCRIPTS:
        bare = plain("main", script)
        yield script, "wrap", train("main", script, "wrap"), bare
        if script in TRAINERS:
            yield script, "callback", train("main", script, "callback"), bare
        with tempfile.TemporaryDirectory() as folder:
            yield script, "run", train_under_run("main", script, Path(folder)), bare
    for kind, (environment, _) in KINDS.items():
        answer = train(environment, "other_loaders.py", "wrap", kind)
        yield kind, "wrap", answer, plain(environment, "other_loaders.py", kind)


def main() -> None:
    print(f"{'training':<24}{'profiled by':<13}{'losses':<8}{'seen':<11}{'waited':>8}"
          f"{'by its clock':>14}  pauses by name")  # fmt: skip
    for script, how, answer, bare in rows():
        profile = next(
            each for each in answer.profiles.values()
            if sum(epoch["batches"] for epoch in each["epochs"]) == len(answer.losses)
        )  # fmt: skip
        outside = "its stages" if profile["pipeline"] else "host side"
        seen = "whole" if profile["stages"].keys() >= WHOLE else outside
        losses = "same" if answer.losses == bare.losses else "OTHER"
        starved = profile["diagnosis"]["starved_fraction"]
        named = ", ".join(sorted(pauses(profile)))
        print(f"{script.removesuffix('.py'):<24}{how:<13}{losses:<8}{seen:<11}{starved:>8.1%}"
              f"{answer.waited:>14.1%}  {named}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
