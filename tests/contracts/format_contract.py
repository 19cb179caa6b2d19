"""What every file format must do. A format's test class inherits `FormatContract`, names the
format, and says what it promises of damaged bytes; everything else is the same for all."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeprof.errors import CorruptData, FormatError, SchemaMismatch, UsageError
from pipeprof.formats import detect, get
from pipeprof.formats.base import (
    FilePlan,
    Format,
    ReadOptions,
)
from tests.contracts.format_samples import (
    EVERY_TYPE,
    INFERRED,
    SMALL,
    WHOLE,
    Bytes,
    batches,
    drive,
    encode,
    meaning,
    plan,
    read,
    tables,
    types_of,
)


class FormatContract:
    """Tests of one format; inherit them, set ``name``, and define the two methods below."""

    name: str
    step = 1
    """The difference between the sizes of splits and blocks to try."""
    damage_step = 1
    """The difference between the bytes to damage, and to cut at."""
    many_rows = 5000
    """How many rows are several blocks."""
    damaged_compressions = 2
    """How many of the format's compressions to damage byte by byte."""

    @property
    def fmt(self) -> Format:
        return get(self.name)

    def rows_survive(self, whole: pa.Table, part: pa.Table, kept: int, data: bytes) -> bool:
        """Whether reading ``part`` without complaint is right, when only the first ``kept`` bytes
        of ``data`` were left of ``whole``."""
        raise NotImplementedError

    def flip_is_seen(self, data: bytes, position: int) -> bool:
        """Whether a flipped bit in this byte must be an error, or change nothing."""
        raise NotImplementedError

    def small_types(self) -> dict[str, pa.DataType]:
        return types_of(SMALL.schema)

    def test_every_type_comes_back(self) -> None:
        data = encode(self.fmt, EVERY_TYPE)
        found = read(self.fmt, data, EVERY_TYPE.column_names, types_of(EVERY_TYPE.schema))
        assert found.schema.equals(EVERY_TYPE.schema)
        assert meaning(found) == meaning(EVERY_TYPE)

    def test_the_formats_infer_the_same(self) -> None:
        found = read(self.fmt, encode(self.fmt, INFERRED), INFERRED.column_names)
        assert meaning(found) == meaning(INFERRED)
        text = found.schema.field("text").type
        others = found.schema.remove(found.schema.get_field_index("text"))
        assert text in (pa.string(), pa.binary())
        assert others.equals(INFERRED.schema.remove(INFERRED.schema.get_field_index("text")))

    def test_every_split_size_gives_each_row_once_in_order(self) -> None:
        data = encode(self.fmt, SMALL, batch_rows=2)
        for split_bytes in range(0, len(data) + self.step + 1, self.step):
            options = ReadOptions(split_bytes=split_bytes, block_bytes=64)
            found = read(self.fmt, data, SMALL.column_names, self.small_types(), options)
            assert found.equals(SMALL), f"split_bytes={split_bytes}"

    @pytest.mark.slow
    def test_every_block_size_gives_the_same_rows(self) -> None:
        for compression in self.fmt.compressions:
            data = encode(self.fmt, SMALL, compression, batch_rows=3)
            for block_bytes in range(1, len(data) + self.step + 1, self.step):
                options = ReadOptions(split_bytes=100, block_bytes=block_bytes)
                found = read(self.fmt, data, SMALL.column_names, self.small_types(), options)
                assert found.equals(SMALL), f"{compression}, block_bytes={block_bytes}"

    def test_splits_say_their_rows_or_nothing(self) -> None:
        source = Bytes(encode(self.fmt, SMALL, batch_rows=2))
        made = plan(self.fmt, source, options=ReadOptions(split_bytes=50))
        for split in made.splits:
            alone = FilePlan(made.schema, (split,))
            rows = sum(batch.num_rows for batch in batches(self.fmt, source, alone))
            assert split.rows in (None, rows)

    def test_a_table_without_rows(self) -> None:
        empty = SMALL.slice(0, 0)
        for compression in self.fmt.compressions:
            assert read(self.fmt, encode(self.fmt, empty, compression)).num_rows == 0

    def test_one_row(self) -> None:
        data = encode(self.fmt, SMALL.slice(4, 1))
        found = read(self.fmt, data, SMALL.column_names, self.small_types())
        assert found.equals(SMALL.slice(4, 1))

    def test_two_thousand_columns(self) -> None:
        wide = pa.table({f"column_{i:04}": pa.array([i, -i]) for i in range(2000)})
        found = read(self.fmt, encode(self.fmt, wide))
        assert found.equals(wide)

    def test_a_cell_of_5_mb(self) -> None:
        large = pa.table({"id": [1, 2], "blob": ["x,\n" * 1_700_000, "small"]})
        options = ReadOptions(block_bytes=2**16)
        found = read(
            self.fmt, encode(self.fmt, large), ["id", "blob"], types_of(large.schema), options
        )
        assert found.equals(large)

    def test_columns_in_the_order_asked_for(self) -> None:
        data = encode(self.fmt, SMALL, batch_rows=2)
        found = read(self.fmt, data, ["ids", "id"], options=ReadOptions(split_bytes=40))
        assert found.equals(SMALL.select(["ids", "id"]))

    def test_an_unknown_column_is_named_with_a_close_one(self) -> None:
        data = encode(self.fmt, SMALL)
        with pytest.raises(SchemaMismatch, match=r"no column 'wrod'; did you mean 'word'\?.*ids"):
            read(self.fmt, data, ["id", "wrod"])

    def test_no_column_and_the_same_twice_are_refused(self) -> None:
        data = encode(self.fmt, SMALL)
        with pytest.raises(SchemaMismatch, match="no columns"):
            read(self.fmt, data, [])
        with pytest.raises(SchemaMismatch, match="'id' is asked for twice"):
            read(self.fmt, data, ["id", "id"])

    def test_a_value_of_another_type_names_the_column(self) -> None:
        data = encode(self.fmt, SMALL)
        with pytest.raises(SchemaMismatch, match="'word'"):
            read(self.fmt, data, ["id", "word"], {"word": pa.int64()})

    def test_cut_short_at_every_byte(self) -> None:
        for compression in self.fmt.compressions[: self.damaged_compressions]:
            data = encode(self.fmt, SMALL, compression, batch_rows=3)
            for kept in range(1, len(data), self.damage_step):
                try:
                    part = read(self.fmt, data[:kept], SMALL.column_names, self.small_types())
                except FormatError:
                    continue
                assert compression in ("none", "snappy"), f"{compression}, {kept} bytes"
                assert self.rows_survive(SMALL, part, kept, data), f"{kept} bytes"

    @pytest.mark.slow
    def test_one_flipped_bit_in_every_byte(self) -> None:
        for compression in self.fmt.compressions[: self.damaged_compressions]:
            data = encode(self.fmt, SMALL, compression, batch_rows=3)
            for position in range(0, len(data), self.damage_step):
                damaged = bytearray(data)
                damaged[position] ^= 1 << (position % 8)
                try:
                    found = read(self.fmt, bytes(damaged), SMALL.column_names, self.small_types())
                except FormatError:
                    continue
                seen = self.flip_is_seen(data, position) or compression in ("gzip", "zlib")
                assert not seen or found.equals(SMALL), f"{compression}, byte {position}"

    def test_an_object_shorter_than_listed_is_an_error(self) -> None:
        data = encode(self.fmt, SMALL)
        made = plan(self.fmt, Bytes(data))
        shrunk = Bytes(data[:-9])
        assert made.schema is not None
        for split in made.splits[-1:]:
            with pytest.raises(CorruptData, match="shorter than when it was listed"):
                list(drive(self.fmt.decode(len(data), split, made.schema, WHOLE), shrunk.read))

    def test_every_compression(self) -> None:
        rows = range(self.many_rows)
        table = pa.table({"n": rows, "text": [f"row {i % 7}" for i in rows]})
        for compression in self.fmt.compressions:
            data = encode(self.fmt, table, compression, batch_rows=1000)
            options = ReadOptions(split_bytes=4096, block_bytes=1024)
            found = read(self.fmt, data, ["n", "text"], types_of(table.schema), options)
            assert found.equals(table), compression

    def test_an_unknown_compression_is_named(self) -> None:
        with pytest.raises(UsageError, match=f"'rar'.*{self.fmt.compressions[1]}"):
            self.fmt.encoder(SMALL.schema, "rar")

    def test_equal_rows_make_equal_bytes(self) -> None:
        for compression in self.fmt.compressions:
            first, second = (encode(self.fmt, EVERY_TYPE, compression) for _ in range(2))
            assert first == second

    def test_a_batch_of_another_schema_is_refused(self) -> None:
        encoder = self.fmt.encoder(SMALL.schema)
        with pytest.raises(SchemaMismatch, match=r"id: int64.*was given.*id: string"):
            encoder.write(pa.record_batch({"id": ["x"]}))

    def test_content_tells_the_format_under_any_name_it_allows(self) -> None:
        for compression in self.fmt.compressions:
            data = encode(self.fmt, SMALL, compression)
            for suffix in self.fmt.suffixes:
                assert detect(f"part-0{suffix}", data[:4096], data[-4096:]).name == self.name

    @settings(
        max_examples=40, deadline=None, suppress_health_check=[HealthCheck.differing_executors]
    )
    @given(tables(), st.integers(1, 300), st.integers(1, 300), st.data())
    def test_any_table_comes_back(
        self, table: pa.Table, split_bytes: int, block_bytes: int, data: st.DataObject
    ) -> None:
        compression = data.draw(st.sampled_from(self.fmt.compressions))
        encoded = encode(self.fmt, table, compression, batch_rows=3)
        options = ReadOptions(split_bytes, block_bytes)
        found = read(self.fmt, encoded, table.column_names, types_of(table.schema), options)
        if table.num_rows:
            assert found.schema.equals(table.schema)
            assert meaning(found) == meaning(table)
        else:
            assert found.num_rows == 0
