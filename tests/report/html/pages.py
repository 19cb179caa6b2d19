"""Results whose pages are hard to render, and helpers that read a page."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

from pipeprof.model import BatchLog, LoaderConfig, Profile, SweepResult, Untried
from tests.contracts.report_samples import LONG_PATH, renamed
from tests.samples import (
    fed_profile,
    sample_profile,
)
from tests.stage_samples import sample_workers, stage_stats
from tests.sweep_samples import sample_conversion, sample_sweep

HOSTILE = "</script><script>window.harmed = true</script><!--\u2028" + "&lt;b&gt;'\""


def log_of(workers: int, batches: int) -> BatchLog:
    """Return a log of ``workers`` that each take 34 ms per batch, with a prefetch of two.

    A step takes 10 ms, and main waits for each batch that is not ready."""
    made: list[float] = []
    asked: list[float] = []
    delivered: list[float] = []
    now = 100.0
    for number in range(batches):
        free = made[number - workers] if number >= workers else 100.0
        wanted = delivered[number - 2 * workers] if number >= 2 * workers else 100.0
        made.append(max(free, wanted) + 0.034)
        asked.append(now)
        delivered.append(max(now, made[number] + 0.001))
        now = delivered[number] + 0.010
    return BatchLog(
        index=tuple(range(batches)),
        epoch=(0,) * batches,
        worker=tuple(number % workers for number in range(batches)),
        samples=(32,) * batches,
        asked_s=tuple(asked),
        delivered_s=tuple(delivered),
        done_s=tuple(at + 0.010 for at in delivered),
        fetch_start_s=tuple(at - 0.034 for at in made),
        fetch_end_s=tuple(made),
        sent_s=tuple(at + 0.0005 for at in made),
        arrived_s=tuple(max(a, m + 0.0005) + 0.0005 for a, m in zip(asked, made, strict=True)),
        read_s=(0.004,) * batches,
        decode_s=(0.028,) * batches,
    )


def many_workers() -> Profile:
    return sample_profile(
        config=LoaderConfig(64, prefetch_factor=2, batch_size=32, start_method="fork"),
        workers=sample_workers(64, slow=41),
        batches=log_of(64, 2000),
    )


def single_batch() -> Profile:
    return sample_profile(
        measured_batches=1,
        stages={"fetch": stage_stats(30.0, 1), "step": stage_stats(10.0, 1)},
        workers=sample_workers(1),
        batches=log_of(1, 1),
    )


def unheard_of() -> Profile:
    """Return a profile with stages of unknown names, and one of unknown length."""
    stages = {
        "decompress": stage_stats(3.0),
        "fetch": stage_stats(123.0, source="unknown"),
        "step": stage_stats(10.0),
    }
    return sample_profile(stages=stages, blame={"decompress": 12.6}, ceilings={}, requests=None)


def guided_sweep() -> SweepResult:
    """Return a sweep with predictions and with settings that were not tried."""
    plain = sample_sweep()
    trials = tuple(
        replace(trial, predicted_samples_per_s=trial.samples_per_s * 1.04)
        if trial.config.num_workers == 2
        else trial
        for trial in plain.trials
    )
    left_out = tuple(
        Untried("/data/clicks-csv", 1024, count, 2, 60_000.0 + count, 66_000.0) for count in (4, 8)
    )
    return replace(plain, trials=trials, untried=left_out, planned=len(trials) + 2)


PAGES: dict[str, Profile | SweepResult] = {
    "profile": sample_profile(batches=log_of(2, 400)),
    "fed": fed_profile(batches=log_of(5, 400)),
    "many-workers": many_workers(),
    "single-batch": single_batch(),
    "unheard-of": unheard_of(),
    "hostile": renamed(sample_profile(batches=log_of(2, 100)), HOSTILE + LONG_PATH),
    "sweep": sample_sweep(),
    "guided-sweep": guided_sweep(),
    "conversion": sample_conversion(),
    "hostile-sweep": renamed(sample_sweep(), HOSTILE + LONG_PATH),
}


class _Reader(HTMLParser):
    """Collect the visible text of a page, one line per row and paragraph."""

    _HIDDEN = frozenset({"script", "style", "title"})
    _LINES = frozenset({"p", "tr", "div", "h1", "h2", "h3", "li", "summary", "figcaption"})

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.links: list[str] = []
        self._unseen = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._unseen += tag in self._HIDDEN
        self.links += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_endtag(self, tag: str) -> None:
        self._unseen -= tag in self._HIDDEN
        if tag in self._LINES:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._unseen:
            self.parts.append(data.replace("\n", " "))


def read(page: str) -> str:
    """Return the text of a page without scripts and styles."""
    reader = _Reader()
    reader.feed(page)
    lines = "".join(reader.parts).split("\n")
    return "\n".join(line for line in map(str.strip, lines) if line)


def links(page: str) -> list[str]:
    """Return all addresses to which a page refers."""
    reader = _Reader()
    reader.feed(page)
    return reader.links
