"""What `print(loader.tuning())` shows."""

from __future__ import annotations

import pipeprof  # noqa: F401  (binds the text)
from pipeprof.model import Fed, TriedSetting, TunedSetting, Tuning

NONE, TWO, THREE = TunedSetting(0, None), TunedSetting(2, 2), TunedSetting(3, 2, pin_memory=True)


def test_it_says_what_was_tried_and_what_stays() -> None:
    tuning = Tuning(
        "fed",
        own=NONE,
        chosen=TWO,
        first=NONE,
        before=Fed(6.13, 0.507),
        after=Fed(12.04, 0.024),
        tried=(
            TriedSetting(THREE, NONE, error="OSError: Cannot allocate memory"),
            TriedSetting(TWO, NONE, 1.96, (1.78, 2.17), predicted=1.99, pairs=1, kept=True),
        ),
        lost_s=0.31,
        notes=("exact=True keeps them",),
    )
    assert str(tuning).splitlines() == [
        "The accelerator is fed.",
        "before  num_workers=0: 6.1 batches/s, waiting 50.7 % of the time",
        (
            "now     num_workers=2, prefetch_factor=2: 12.0 batches/s, waiting 2.4 % of the time, "
            "1.96 times as many"
        ),
        "search  cost 0.3 s",
        (
            "tried   num_workers=3, prefetch_factor=2, pin_memory=True: failed, "
            "OSError: Cannot allocate memory"
        ),
        (
            "tried   num_workers=2, prefetch_factor=2: 1.96 (1.78–2.17) of num_workers=0, "
            "predicted 1.99; kept"
        ),
        "note    exact=True keeps them",
        "code    DataLoader(…, num_workers=2, prefetch_factor=2, persistent_workers=True)",
    ]


def test_waits_for_other_loaders_stand_beside_its_own() -> None:
    tuning = Tuning(
        "fed", own=NONE, chosen=TWO, first=NONE,
        before=Fed(6.13, 0.507, 0.012), after=Fed(6.22, 0.0, 0.513),
        tried=(TriedSetting(TWO, NONE, 1.96, (1.78, 2.17), pairs=4, kept=True, with_others=1.01),),
    )  # fmt: skip
    before, now, tried = (str(tuning).splitlines()[line] for line in (1, 2, 4))
    assert str(tuning).startswith("The accelerator waits for other loaders, not for this one.\n")
    assert before.endswith("6.1 batches/s, waiting 50.7 % of the time, 1.2 % for other loaders")
    assert now.endswith("waiting 0.0 % of the time, 51.3 % for other loaders, 1.01 times as many")
    assert tried.endswith("of num_workers=0 if others are ready, 1.01 with them; kept")


def test_a_loader_that_was_left_alone_says_why() -> None:
    tuning = Tuning("off", TWO, TWO, TWO, notes=("list is not a torch DataLoader",))
    assert str(tuning) == "This loader is not tuned.\nnote    list is not a torch DataLoader"
