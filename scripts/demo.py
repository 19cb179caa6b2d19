"""Run the demo: a starved training, its cause, the fix, and a check of the prediction.

A table in three formats and on S3 follows. The demo uses the command line, prints one screen, and
saves the output of the commands in demo/*.log.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from textwrap import fill
from time import monotonic

import pipeprof
from pipeprof.bench_data.images import kind as images
from pipeprof.model import Profile, Recommendation, Speedup, SweepResult
from pipeprof.report.document.data_sets import data_sets
from pipeprof.units import format_bytes, format_count, format_duration, format_share, percent
from scripts.demo_s3 import LATENCY_S, NoServer, serve_s3

WIDTH = 100
SCRIPT = "examples/train_photos.py"
TRAIN_MS = 80
COLUMNS = "x0,x1,x2,x3,x4,x5,x6,label"
"""Columns that the training reads."""
STEP_MS = 32
FORMATS = {"csv": "gzip", "tfrecord": "none", "parquet": "snappy"}
"""Format → its usual compression."""
LABELS = {"csv": "CSV (gzip)", "tfrecord": "TFRecord", "parquet": "Parquet"}


class Demo:
    """Runs commands of pipeprof, with a folder for all of their files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = {**os.environ, "COLUMNS": str(WIDTH), "NO_COLOR": "1"}

    def run(self, log: str, *words: str, show: bool = True) -> None:
        """Run ``pipeprof WORDS`` with its output in the file ``log``."""
        if show:
            line = fill(f"$ pipeprof {shlex.join(words)}", WIDTH - 2, subsequent_indent="    ",
                        break_long_words=False, break_on_hyphens=False)  # fmt: skip
            print(line.replace("\n", " \\\n"), flush=True)
        command = [str(Path(sys.executable).with_name("pipeprof")), *words]
        with (self.folder / log).open("a") as file:
            done = subprocess.run(command, env=self.env, stdout=file, stderr=file)
        if done.returncode:
            sys.exit(f"The demo ends here: the command failed, see {self.folder / log}.")

    def train(self, name: str, settings: str, batches: int) -> Profile:
        """Profile the training script with ``settings``, such as ``num_workers=2``."""
        out = self.folder / name
        shutil.rmtree(out, ignore_errors=True)
        changed = ["--set", settings] if settings else []
        training = [SCRIPT, f"{self.folder}/photos", "--step-ms", str(TRAIN_MS)]
        training += ["--batches", str(batches)]
        self.run(f"{name}.log", "run", *changed, "--html", "--out", str(out), *training)
        profile = pipeprof.load(self.saved(name))
        assert isinstance(profile, Profile)
        return profile

    def saved(self, name: str, suffix: str = ".json") -> Path:
        """Return the file that `train` saved: the profile, or its page."""
        return next((self.folder / name).glob(f"*{suffix}"))


def show_fix(demo: Demo, batches: int) -> None:
    heading("1  A first training script: a folder of JPEGs, Pillow, a plain DataLoader")
    print(f"  Its accelerator is emulated: a sleep of {TRAIN_MS} ms for each batch.")
    before = demo.train("before", "", batches)
    entry("verdict", verdict(before))
    entry("cause", cause(before))
    for name, worth in list(before.worth.items())[:1]:
        entry("worth", f"{name} 25 % cheaper: {gained(worth.cheaper)}; free: {gained(worth.free)}")
    advice = next((each for each in before.recommendations if settings_in(each)), None)
    if advice is None:
        entry("advice", "no setting of the DataLoader would help, so there is nothing to try")
        return
    entry("advice", f"{advice.setting}: {advice.current} → {advice.proposed}; {promise(advice)}")

    heading("2  The advice applied without an edit: the prediction, and the result")
    after = demo.train("after", settings_in(advice), batches)
    files = [str(demo.saved(name)) for name in ("before", "after")]
    demo.run("compare.log", "compare", *files, "--html", f"{demo.folder}/compare.html")
    rate, got = before.throughput.samples_per_s, after.throughput.samples_per_s
    promised, starved = advice.predicted_samples_per_s, advice.predicted_starved
    row("", "samples/s", "gain", "interval", "accelerator waits")
    row("  before", format_count(rate), "", between(before.throughput.interval), waits(before))
    row(
        "  promised",
        format_count(promised) if promised else "open",
        f"{promised / rate:.2f}×" if promised else "",
        between(advice.interval),
        format_share(starved) if starved is not None else "",
    )
    row("  measured", format_count(got), f"{got / rate:.2f}×",
        between(after.throughput.interval), waits(after))  # fmt: skip
    if advice.interval:
        low, high = advice.interval
        where = "within" if low <= got <= high else "outside"
        print(f"  The measured rate is {where} the promised interval.")
    if after.diagnosis.verdict == "starved":
        entry("now", after.diagnosis.headline)


def verdict(profile: Profile) -> str:
    found = profile.diagnosis
    low, high = (f"{share * 100:.1f}" for share in found.starved_interval)
    return (
        f"{found.verdict.upper()}: the accelerator waits {format_share(found.starved_fraction)} "
        f"of the time (95 %: {low}–{high} %)"
    )


def cause(profile: Profile) -> str:
    """Return the first cause, its share of the wait, and its time per batch."""
    if not profile.blame:
        return "none: nothing stalled"
    first, seconds = next(iter(profile.blame.items()))
    stage = profile.stages.get(first)
    takes = f"; it takes {format_duration(stage.mean_s)} a batch" if stage else ""
    return f"{first}, {percent(seconds / profile.stall_s)} of the wait{takes}"


def gained(speedup: Speedup) -> str:
    low, high = (f"{share * 100:.0f}" for share in speedup.interval)
    return f"{speedup.share * 100:+.0f} % samples/s (90 %: {low} to {high})"


def promise(advice: Recommendation) -> str:
    if advice.predicted_samples_per_s:
        return f"it promises {format_count(advice.predicted_samples_per_s)} samples/s"
    if advice.interval:
        return f"it may bring {between(advice.interval)} samples/s"
    return "its effect is unknown from this run"


def settings_in(advice: Recommendation) -> str:
    """Return the value for ``--set``: ``num_workers=2`` for ``DataLoader(…, num_workers=2)``. It is
    empty for other advice."""
    found = re.fullmatch(r"DataLoader\(…, ((?:\w+=\w+(?:, )?)+)\)", advice.code or "")
    return found[1].replace(", ", ",") if found else ""


def show_formats(demo: Demo, size: str, batch: int, trial_s: float) -> None:
    heading("3  A table of 201 columns, of which a training reads 8: three formats, and S3")
    urls = [write_table(demo, name, size) for name in FORMATS]
    results = demo.folder / "sweep"
    shutil.rmtree(results, ignore_errors=True)
    with ExitStack() as stack:
        urls += on_s3(demo, stack)
        demo.run(
            "sweep.log", "sweep", *urls, "--columns", COLUMNS, "--workers", "1,4",
            "--batch-size", str(batch), "--step-ms", str(STEP_MS), "--cache", "warm",
            "--trial-time", f"{trial_s:g}", "--warmup-time", f"{min(0.5, trial_s):g}",
            "--out", str(results), "--html", f"{demo.folder}/sweep.html",
        )  # fmt: skip
    sweep = pipeprof.load(results / "sweep.json")
    assert isinstance(sweep, SweepResult)
    row("  samples/s with", "1 worker", "4 workers", "reads", "accelerator waits, at best")
    for data in data_sets(sweep):
        best = data.best
        label = LABELS[best.format] + " on S3" * data.url.startswith("s3:")
        rates = {trial.config.num_workers: trial.samples_per_s for trial in data.trials}
        blamed = f", for {best.bottleneck}" if best.verdict == "starved" else ""
        row(
            f"  {label}",
            *(format_count(rates[workers]) for workers in (1, 4)),
            format_bytes(best.bytes_per_sample),
            f"{format_share(best.starved_fraction)}, {best.verdict}{blamed}",
        )
    most = format_count(batch / STEP_MS * 1000)
    print(
        f"  The accelerator could take {most} samples/s. Reads: bytes asked of storage, a sample."
    )


def on_s3(demo: Demo, stack: ExitStack) -> list[str]:
    """Start a server that runs until ``stack`` ends, and return the URLs on it.

    Without a server, print the reason and return none.
    """
    try:
        demo.env |= stack.enter_context(serve_s3(demo.folder))
    except NoServer as reason:
        print(f"  S3 is left out: {reason}.")
        return []
    print(
        f"  S3 is a server on this machine, behind a relay that adds {LATENCY_S * 1e3:.0f} ms to "
        "each request,\n  as the distance to a bucket in the same region does."
    )
    return ["s3://table/parquet"]


def write_photos(folder: Path, count: int) -> None:
    """Write JPEGs of 160 to 500 pixels a side in ten classes, unless they exist."""
    if len(list(folder.glob("*/*.jpg"))) == count:
        return
    shutil.rmtree(folder, ignore_errors=True)
    for start in range(0, count, images.block_rows):
        block = images.block(0, start // images.block_rows).slice(0, count - start)
        for number, (photo, label) in enumerate(zip(block["image"], block["label"], strict=True)):
            file = folder / f"class{label.as_py() % 10}" / f"{start + number:05}.jpg"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(photo.as_py())


def write_table(demo: Demo, name: str, size: str) -> str:
    """Write the table in this format unless it exists, and return its URL."""
    url = str(demo.folder / "table" / name)
    written = ["--format", name, "--compression", FORMATS[name], "--size", size, "--quiet"]
    demo.run("generate.log", "generate", url, "--kind", "wide", *written, show=False)
    return url


def waits(profile: Profile) -> str:
    return f"{format_share(profile.diagnosis.starved_fraction)}, {profile.diagnosis.verdict}"


def between(interval: tuple[float, float] | None) -> str:
    return "–".join(map(format_count, interval)) if interval else ""


def heading(text: str) -> None:
    bold, plain = ("\033[1m", "\033[0m") if sys.stdout.isatty() else ("", "")
    print(f"\n{bold}{text}{plain}", flush=True)


def entry(name: str, text: str) -> None:
    print(fill(text, WIDTH, initial_indent=f"  {name:9}", subsequent_indent=" " * 11), flush=True)


def row(name: str, *cells: str) -> None:
    figures = "".join(f"{cell:>11}" for cell in cells[:-1])
    print(f"{name:<18}{figures}   {cells[-1]}".rstrip())


def main() -> None:
    parser = argparse.ArgumentParser(description="Run the demo, or with options a shorter one.")
    parser.add_argument("--folder", type=Path, default=Path("demo"))
    parser.add_argument("--photos", type=int, default=640)
    parser.add_argument("--batches", type=int, default=64)
    parser.add_argument("--table", default="32MB", help="size of the rows in RAM")
    parser.add_argument("--batch", type=int, default=8192, help="rows of the table in a batch")
    parser.add_argument("--trial-s", type=float, default=1.5)
    asked = parser.parse_args()
    started, demo = monotonic(), Demo(asked.folder)
    demo.folder.mkdir(parents=True, exist_ok=True)
    for log in demo.folder.glob("*.log"):
        log.unlink()
    write_photos(demo.folder / "photos", asked.photos)
    show_fix(demo, asked.batches)
    show_formats(demo, asked.table, asked.batch, asked.trial_s)
    print(f"\nOpen {demo.saved('before', '.html')} in a browser: the run that starved.")
    print(f"Also: {demo.folder}/compare.html, {demo.folder}/sweep.html; logs of each command.")
    print(f"Done in {monotonic() - started:.0f} s.")


if __name__ == "__main__":
    main()
