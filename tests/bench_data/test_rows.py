"""Rows of each kind: fixed by the seed alone, and shaped like the real thing."""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from PIL import Image

from pipeprof.bench_data import KINDS, rows
from pipeprof.errors import UsageError


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> rows.Kind:
    return rows.get(request.param)


def table(kind: rows.Kind, start: int, stop: int, size: int = 1000, seed: int = 0) -> pa.Table:
    return pa.Table.from_batches(rows.batches(kind, seed, start, stop, size), kind.schema)


def test_a_block_has_the_rows_and_types_it_promises(kind: rows.Kind) -> None:
    block = kind.block(0, 1)
    assert block.schema == kind.schema
    assert block.num_rows == kind.block_rows
    block.validate(full=True)


def test_rows_are_the_same_however_they_are_cut(kind: rows.Kind) -> None:
    whole = table(kind, 0, 2 * kind.block_rows)
    start, stop = kind.block_rows // 3, kind.block_rows + 17
    assert table(kind, start, stop, size=7 * 3).equals(whole.slice(start, stop - start))
    assert table(kind, start, stop, size=10**6).equals(whole.slice(start, stop - start))


def test_batches_have_the_size_asked_for_but_for_the_last(kind: rows.Kind) -> None:
    size = kind.block_rows * 2 // 3
    stop = 2 * kind.block_rows + 1
    counts = [batch.num_rows for batch in rows.batches(kind, 0, 5, stop, size)]
    assert counts[:-1] == [size] * (len(counts) - 1)
    assert sum(counts) == stop - 5
    assert list(rows.batches(kind, 0, 5, 5, size)) == []


def test_another_seed_gives_other_rows(kind: rows.Kind) -> None:
    first, again, other = (kind.block(seed, 0) for seed in (1, 1, 2))
    assert first.equals(again)
    assert not first.equals(other)
    assert not first.equals(kind.block(1, 1))


def test_the_mean_row_is_as_large_as_documented(kind: rows.Kind) -> None:
    blocks = [kind.block(seed, 1) for seed in (0, 1)]
    mean = sum(block.nbytes for block in blocks) / sum(block.num_rows for block in blocks)
    assert kind.mean_row_bytes == pytest.approx(mean, rel=0.1)


DIGEST = """
import hashlib
from pipeprof.bench_data import rows
digest = hashlib.sha256()
for name in ("tabular", "tokens"):
    block = rows.get(name).block(0, 0)
    for field, column in zip(block.schema, block.columns):
        if str(field.type) != "float":
            digest.update(repr(column.to_pylist()).encode())
print(digest.hexdigest())
"""


def test_rows_are_those_of_this_generator_version_in_every_process() -> None:
    """When this fails because rows were changed on purpose, raise `rows.GENERATOR` too. Otherwise
    an interrupted data set would continue with other rows."""
    ran = subprocess.run([sys.executable, "-c", DIGEST], capture_output=True, text=True, check=True)
    assert (rows.GENERATOR, ran.stdout.strip()[:16]) == (1, "4a7ecabeb0571665")


def test_an_unknown_kind_names_those_there_are() -> None:
    with pytest.raises(UsageError, match="tabular, wide, images, tokens"):
        rows.get("video")


class TestTabular:
    block = rows.get("tabular").block(0, 3)

    def column(self, name: str) -> np.ndarray:
        return self.block[name].to_numpy(zero_copy_only=False)

    def test_types_are_those_that_all_formats_share(self) -> None:
        assert {str(field.type) for field in self.block.schema} == {"int64", "float", "string"}

    def test_it_compresses_as_real_tables_do(self) -> None:
        buffer = io.BytesIO()
        pyarrow.parquet.write_table(pa.Table.from_batches([self.block]), buffer)
        assert 0.2 < buffer.tell() / self.block.nbytes < 0.6

    def test_times_only_grow_also_from_block_to_block(self) -> None:
        following = rows.get("tabular").block(0, 4)["timestamp_ms"].to_numpy()
        assert (np.diff(np.concatenate((self.column("timestamp_ms"), following))) > 0).all()

    def test_few_values_are_most_of_the_rows(self) -> None:
        brands = self.block["brand"].value_counts().field("counts").to_numpy()
        assert np.sort(brands)[::-1][:90].sum() > 0.35 * brands.sum()
        assert len(brands) > 500

    def test_some_figures_are_missing(self) -> None:
        missing = {f.name: self.block[f.name].null_count for f in self.block.schema}
        assert {name for name, count in missing.items() if count} == {"discount", "rating"}
        assert 0.1 < missing["rating"] / self.block.num_rows < 0.2

    def test_prices_have_two_decimals_and_flags_two_values(self) -> None:
        price = self.column("price").astype(float)
        assert price.min() > 0
        assert np.abs(price - price.round(2)).max() < 1e-4
        for flag in ("is_member", "label"):
            assert set(self.column(flag)) == {0, 1}

    def test_features_are_correlated_and_tell_the_label(self) -> None:
        features = np.stack([self.column(f"feature_{i}") for i in range(8)])
        off_diagonal = np.corrcoef(features) - np.eye(8)
        assert np.abs(off_diagonal).max() > 0.5
        assert np.corrcoef(features[0], self.column("label"))[0, 1] > 0.15


class TestImages:
    block = rows.get("images").block(0, 0)

    def test_each_is_a_whole_jpeg_of_the_size_it_says(self) -> None:
        for row in self.block.to_pylist():
            image = Image.open(io.BytesIO(row["image"]))
            image.load()
            assert (image.format, image.size) == ("JPEG", (row["width"], row["height"]))
            assert 0 <= row["label"] < 1000

    def test_sizes_vary_as_photographs_do(self) -> None:
        sizes = np.array([len(image.as_py()) for image in self.block["image"]])
        assert 20_000 < np.median(sizes) < 60_000
        assert np.percentile(sizes, 90) > 2 * np.percentile(sizes, 10)
        for side in ("width", "height"):
            pixels = self.block[side].to_numpy()
            assert 160 <= pixels.min() < 240 < 420 < pixels.max() <= 500

    def test_content_is_neither_noise_nor_blank(self) -> None:
        """Neighbouring pixels are alike, distant ones differ."""
        for image in self.block["image"][:8]:
            grey = np.asarray(Image.open(io.BytesIO(image.as_py())).convert("L"), float)
            neighbours = np.abs(np.diff(grey, axis=1)).mean()
            assert 1 < neighbours < grey.std() / 2

    def test_no_two_are_equal(self) -> None:
        digests = {hashlib.sha256(image.as_py()).digest() for image in self.block["image"]}
        assert len(digests) == self.block.num_rows


class TestTokens:
    block = rows.get("tokens").block(0, 2)

    def test_lengths_spread_like_documents(self) -> None:
        lengths = np.diff(self.block["tokens"].offsets.to_numpy())
        assert 150 < np.median(lengths) < 250
        assert lengths.min() >= 1
        assert lengths.max() == 2048

    def test_ids_follow_zipf(self) -> None:
        counts = np.bincount(self.block["tokens"].flatten().to_numpy(), minlength=50_257)
        assert len(counts) == 50_257
        assert counts[0] / counts[9] == pytest.approx(np.log(2) / np.log(11 / 10), rel=0.1)

    def test_documents_are_counted(self) -> None:
        first = 2 * rows.get("tokens").block_rows
        assert self.block["doc_id"][:2].to_pylist() == [first, first + 1]
