"""A tuned loader is shown and exported as one, whatever settings deliver its batches."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from time import perf_counter

import pytest
from torch.utils.data import DataLoader

import pipeprof
from pipeprof.loaders.live.exporter import Exporter, exporter
from pipeprof.loaders.live.live_pass import LiveLoader
from pipeprof.loaders.live.sinks import JsonLines
from pipeprof.loaders.live.view import Live
from pipeprof.model import TunedSetting
from tests.loaders.tune.tuned import Slow, samples, tuned

BATCHES = 200


@pytest.mark.parametrize("workers", [0, 1])
def test_totals_and_epochs_continue_where_the_setting_changes(
    workers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeprof.loaders.live.periodic.MOST_SHARE", 1.0)
    file, lines = tmp_path / "m.jsonl", io.StringIO()
    exporter = Exporter(JsonLines(str(file), {}), 0.05)
    outputs = [Live(lines, 0.05, perf_counter), exporter]
    shown = LiveLoader("train", outputs, in_parts=True)
    bare = DataLoader(Slow(8 * BATCHES), batch_size=8, num_workers=workers)
    loader = tuned(bare, TunedSetting(2, 2), shown=shown)
    for _ in range(2):
        assert samples(loader) == [*range(8 * BATCHES)]
    exporter.finish()
    delivered = [each.profiler.batches for each in loader._tuner._variants.all()]
    assert sum(delivered) == 2 * BATCHES
    assert sum(batches > 0 for batches in delivered) > 1, "no other setting was tried"
    sent = [json.loads(line) for line in file.read_text().splitlines()]
    assert {each["loader"] for each in sent} == {"train"}
    totals = [each["batches_total"] for each in sent]
    assert totals == sorted(totals)
    assert (totals[-1], sent[-1]["samples_total"]) == (2 * BATCHES, 16 * BATCHES)
    assert [each["epoch"] for each in sent] == sorted(each["epoch"] for each in sent)
    assert {each["epoch"] for each in sent} == {1, 2}
    found = re.findall(r"train, epoch (\d): (\d+) of 200 batches", lines.getvalue())
    places = [(int(epoch), int(batches)) for epoch, batches in found]
    assert places == sorted(places)
    assert {epoch for epoch, _ in places} == {1, 2}


def test_a_run_that_shows_loaders_leaves_the_exports_of_a_script_alone(tmp_path: Path) -> None:
    files = [tmp_path / "script.jsonl", tmp_path / "run.jsonl"]
    script, run = (Exporter(JsonLines(str(each), {}), 100.0) for each in files)
    loader = tuned(
        DataLoader(Slow(96), 8, num_workers=1), shown=LiveLoader("train", [script], in_parts=True)
    )
    loader.show(LiveLoader("train", [run], in_parts=True))
    assert samples(loader) == [*range(96)]
    for each, file in zip((script, run), files, strict=True):
        each.finish()
        assert json.loads(file.read_text().splitlines()[-1])["batches_total"] == 12


def test_tune_exports_also_a_loader_that_it_leaves_as_it_is(tmp_path: Path) -> None:
    form = f"jsonl:{tmp_path}/m.jsonl"
    workers = DataLoader(Slow(96), 8, num_workers=1)
    for name, bare in (("stream", iter(range(12))), ("tuned", workers)):
        loader = pipeprof.tune(bare, name=name, export=form, export_every=100.0)
        assert len([*loader]) == 12
        assert (loader.tuning().state == "off") == (name == "stream")
    exporter(form, 100.0).finish()
    sent = [json.loads(line) for line in (tmp_path / "m.jsonl").read_text().splitlines()]
    assert [(each["loader"], each["batches_total"]) for each in sent] == [
        ("stream", 12), ("tuned", 12),
    ]  # fmt: skip
