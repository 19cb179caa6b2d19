"""Sweeps that convert data: copies are written, compared, removed and resumed."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pipeprof
from pipeprof import formats
from pipeprof.bench_data.generate import GenerateSpec, generate
from pipeprof.errors import OutputError, ProfileError, UsageError
from pipeprof.model import ConversionSpec, SweepResult, SweepSpec
from pipeprof.sweep.plan import check, plan_remaining, plan_sweep
from pipeprof.sweep.runner import SweepOutcome, run_sweep
from tests.sweep.test_sweep import Listener, saved_in


class WritingListener(Listener):
    """Records which copies are written, and checks that they exist while trials run."""

    def __init__(self, stop_after: int | None = None, copies: Path | None = None) -> None:
        super().__init__(stop_after)
        self.written: list[str] = []
        self.copies = copies

    def writing(self, name: str, share: float) -> None:
        assert 0 <= share <= 1
        self.written += [name] if share == 0.0 else []

    def started(self, setting: Any) -> None:
        assert self.copies is None or self.copies.is_dir()
        super().started(setting)


@pytest.fixture
def data(tmp_path: Path) -> str:
    folder = tmp_path / "data"
    folder.mkdir()
    table = pa.record_batch(
        {
            "id": pa.array(range(6_000), pa.int64()),
            "word": pa.array([f"word {n % 100}" for n in range(6_000)]),
        }
    )
    for number in range(2):
        encoder = formats.get("csv").encoder(table.schema)
        (folder / f"{number}.csv").write_bytes(encoder.write(table) + encoder.finish())
    return str(folder)


def spec_for(url: str, names: str, **changes: Any) -> SweepSpec:
    conversion = ConversionSpec(tuple(names.split(",")), ("local",), 100_000_000)
    spec = SweepSpec(
        urls=(url,), workers=(0,), prefetch=(2,), batch_sizes=(256,), step_s=0.0,
        trial_s=0.1, warmup_s=0.02, conversion=conversion,
    )  # fmt: skip
    return dataclasses.replace(spec, **changes)


def sweep(
    out: Path, spec: SweepSpec, stop_after: int | None = None, **options: Any
) -> tuple[SweepOutcome, WritingListener]:
    listener = WritingListener(stop_after, Path(f"{out}-data"))
    return run_sweep(plan_sweep(spec, out), listener, **options), listener


def test_each_copy_is_tried_against_the_data_as_it_is(data: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    outcome, listener = sweep(out, spec_for(data, "csv,parquet:zstd,tfrecord"))
    result, found = outcome.result, outcome.result.conversion
    assert outcome.stopped is None
    assert listener.written == ["parquet:zstd", "tfrecord"], "csv is what is compared with"
    assert [trial.format for trial in result.trials] == ["csv", "parquet", "tfrecord", "csv"]
    assert listener.began == (0, 4)
    assert found is not None
    assert found.sample is not None
    assert (found.sample.rows, found.sample.share) == (12_000, 1.0)
    assert (found.baseline, found.control) == (0, 3)
    assert result.trials[3].config == result.trials[0].config
    for copy, gain, number in zip(found.copies, found.gains, (1, 2), strict=True):
        assert gain.url == copy.url == result.trials[number].url
        assert gain.trial == number
        assert gain.storage == pytest.approx(copy.bytes / found.sample.storage_bytes)
        first = result.trials[0].samples_per_s
        assert gain.speed == pytest.approx(result.trials[number].samples_per_s / first)
    parquet, tfrecord = found.gains
    assert parquet.storage < 0.5 < 2 < tfrecord.storage
    assert set(found.advice) == {"local"}
    assert saved_in(out) == result
    assert not Path(f"{out}-data").exists()
    assert sorted(os.listdir(tmp_path)) == ["data", "out"]
    codes = [advice.recommendation.code for advice in result.advice if advice.recommendation]
    assert [code is not None for code in codes] == [True, False, False], "for what is still there"


def test_a_resumed_sweep_writes_the_copies_it_still_needs(data: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    outcome, _ = sweep(out, spec_for(data, "parquet,tfrecord"), stop_after=2)
    assert outcome.stopped == "interrupted"
    assert not Path(f"{out}-data").exists()
    saved = saved_in(out)
    assert len(saved.trials) == 2
    assert saved.conversion is not None
    assert len(saved.conversion.gains) == 1

    listener = WritingListener()
    finished = run_sweep(plan_remaining(out), listener).result
    assert listener.written == ["tfrecord"]
    assert finished.trials[:2] == saved.trials
    assert [trial.format for trial in finished.trials] == ["csv", "parquet", "tfrecord", "csv"]
    assert finished.conversion is not None
    assert [copy.rows for copy in finished.conversion.copies] == [12_000, 12_000]
    assert not Path(f"{out}-data").exists()

    idle = WritingListener()
    assert run_sweep(plan_remaining(out), idle).result == finished
    assert idle.written == []


def test_a_sweep_of_changed_data_is_not_resumed(data: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    sweep(out, spec_for(data, "parquet,tfrecord"), stop_after=2)
    (Path(data) / "1.csv").unlink()
    with pytest.raises(ProfileError, match="the data has changed since"):
        run_sweep(plan_remaining(out), WritingListener())
    assert not Path(f"{out}-data").exists()
    assert len(saved_in(out).trials) == 2, "what was measured stays"


def test_copies_of_a_killed_sweep_are_removed_when_it_is_resumed(data: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    sweep(out, spec_for(data, "parquet,tfrecord"), stop_after=2)
    for name in ("parquet-snappy", "tfrecord-none"):
        (tmp_path / "out-data" / name).mkdir(parents=True)
        (tmp_path / "out-data" / name / "part-00099.x").write_bytes(b"half")
    finished = run_sweep(plan_remaining(out), WritingListener()).result
    assert len(finished.trials) == 4
    assert sorted(os.listdir(tmp_path)) == ["data", "out"]


def test_interrupted_while_writing(data: str, tmp_path: Path) -> None:
    class Impatient(WritingListener):
        def writing(self, name: str, share: float) -> None:
            if name == "tfrecord" and share > 0:
                raise KeyboardInterrupt

    out = tmp_path / "out"
    plan = plan_sweep(spec_for(data, "parquet,tfrecord"), out)
    assert run_sweep(plan, Impatient()).stopped == "interrupted"
    assert sorted(os.listdir(tmp_path)) == ["data", "out"]
    assert saved_in(out).trials == ()


def test_kept_copies_can_be_read(data: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = sweep(out, spec_for(data, "parquet:zstd"), keep=True)[0].result
    assert result.conversion is not None
    assert result.conversion.kept
    [copy] = result.conversion.copies
    dataset = pipeprof.open_dataset(copy.url, batch_size=12_000)
    ids = [int(number) for batch in dataset for number in batch["id"]]
    assert sorted(ids) == sorted([*range(6_000)] * 2)
    code = result.advice[1].recommendation
    assert code is not None
    assert copy.url in str(code.code)


def test_a_format_that_cannot_hold_the_data_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    table = pa.record_batch({"x": pa.array([n / 3 for n in range(9000)], pa.float64())})
    encoder = formats.get("parquet").encoder(table.schema)
    (tmp_path / "data/x.parquet").write_bytes(encoder.write(table) + encoder.finish())
    url = str(tmp_path / "data")
    result = sweep(tmp_path / "out", spec_for(url, "tfrecord,csv"))[0].result
    assert [trial.format for trial in result.trials] == ["parquet", "csv", "parquet"]
    assert result.planned == 3
    assert result.conversion is not None
    skipped = {copy.name: copy.skipped for copy in result.conversion.copies}
    assert skipped["csv"] is None
    assert "'x'" in str(skipped["tfrecord"])

    with pytest.raises(OutputError, match="no format holds this data: tfrecord: "):
        sweep(tmp_path / "none", spec_for(url, "tfrecord"))
    assert sorted(os.listdir(tmp_path)) == ["data", "out"]


@pytest.mark.parametrize(
    ("names", "storages", "words"),
    [
        ("csv", ("local",), "is csv already, which copies are compared with"),
        ("parquet", ("{tmp}/nowhere",), "nowhere is no folder; create it"),
        ("orc", ("local",), "'orc' is not a format"),
    ],
)
def test_what_cannot_be_compared(
    data: str, tmp_path: Path, names: str, storages: tuple[str, ...], words: str
) -> None:
    places = tuple(storage.format(tmp=tmp_path) for storage in storages)
    conversion = ConversionSpec(tuple(names.split(",")), places, 10**9)
    with pytest.raises(UsageError, match=words):
        plan_sweep(spec_for(data, names, conversion=conversion), tmp_path / "out")
    assert os.listdir(tmp_path) == ["data"]


def test_an_existing_folder_is_never_used(data: str, tmp_path: Path) -> None:
    (tmp_path / "out-data").mkdir()
    with pytest.raises(OutputError, match="out-data exists already"):
        plan_sweep(spec_for(data, "parquet"), tmp_path / "out")
    assert (tmp_path / "out-data").is_dir()


def test_a_sweep_is_resumed_with_the_storage_it_began_with(data: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    sweep(out, spec_for(data, "parquet"), stop_after=1)
    with pytest.raises(UsageError, match="this sweep writes to local; give that --storage"):
        plan_remaining(out, storages=("s3://other",))


def test_one_data_set_at_a_time(data: str) -> None:
    with pytest.raises(UsageError, match="name one URL"):
        check(spec_for(data, "parquet", urls=(data, data)))


def test_copies_in_another_folder_have_a_subfolder_of_their_own(data: str, tmp_path: Path) -> None:
    (tmp_path / "fast").mkdir()
    conversion = ConversionSpec(("parquet",), (f"{tmp_path}/fast",), 10**9)
    spec = spec_for(data, "", conversion=conversion)
    result = sweep_elsewhere(tmp_path / "out", spec)
    assert result.trials[1].url.startswith(f"{tmp_path}/fast/pipeprof-out-")
    assert os.listdir(tmp_path / "fast") == []


def sweep_elsewhere(out: Path, spec: SweepSpec) -> SweepResult:
    return run_sweep(plan_sweep(spec, out), WritingListener()).result


DECODE = """
import io
import numpy
from PIL import Image

def decode(batch):
    images = batch["image"]
    for row in range(len(images)):
        pixels = numpy.asarray(Image.open(io.BytesIO(images.bytes_at(row))))
        assert pixels.shape == (int(batch["height"][row]), int(batch["width"][row]), 3)
    return batch["label"]
"""


@pytest.mark.timed
def test_images_are_copied_as_bytes_and_decoded_by_transform(tmp_path: Path) -> None:
    url = str(tmp_path / "photos")
    generate(GenerateSpec(url, "images", "parquet", 1_000_000, shards=2))
    (tmp_path / "mine.py").write_text(DECODE)
    transform = f"{tmp_path}/mine.py:decode"
    spec = spec_for(url, "tfrecord,csv", batch_sizes=(8,), transform=transform)
    result = sweep(tmp_path / "out", spec)[0].result
    assert [trial.format for trial in result.trials] == ["parquet", "tfrecord", "csv", "parquet"]
    for trial in result.trials:
        stages = pipeprof.load(tmp_path / "out" / trial.profile).stages
        assert stages["transform"].p50_s > 0.001, "eight JPEGs"
        assert stages["decode"].bytes == 0 < stages["read"].bytes
    assert result.conversion is not None
    in_tfrecord, in_csv = result.conversion.gains
    assert in_tfrecord.storage == pytest.approx(1.0, abs=0.02), "JPEGs do not shrink"
    assert in_csv.storage == pytest.approx(4 / 3, abs=0.02), "base64"


def test_token_lists_are_copied_unchanged(tmp_path: Path) -> None:
    url = str(tmp_path / "tokens")
    generate(GenerateSpec(url, "tokens", "tfrecord", 1_000_000, shards=2))
    spec = spec_for(url, "parquet:zstd,csv", batch_sizes=(32,))
    result = sweep(tmp_path / "out", spec, keep=True)[0].result
    assert result.conversion is not None
    assert result.conversion.sample is not None
    lists = [
        sorted(
            (int(batch["doc_id"][row]), tuple(batch["tokens"][row].tolist()))
            for batch in pipeprof.open_dataset(place)
            for row in range(len(batch["doc_id"]))
        )
        for place in (url, *(copy.url for copy in result.conversion.copies))
    ]
    assert len(lists[0]) == result.conversion.sample.rows
    assert lists[0] == lists[1] == lists[2]
