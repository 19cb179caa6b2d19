"""Lightning's smallest training with a profiler of its own, which prints how often it did what:
`python beside_lightning.py plain|wrap|callback`."""

from __future__ import annotations

import functools

import lightning

lightning.Trainer = functools.partial(lightning.Trainer, profiler="simple")

import lightning_trainer  # noqa: E402

if __name__ == "__main__":
    lightning_trainer.main()
