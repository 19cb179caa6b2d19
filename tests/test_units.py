from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeprof.errors import UsageError
from pipeprof.units import (
    format_binary,
    format_bytes,
    format_count,
    format_duration,
    format_rate,
    format_share,
    listed,
    parse_size,
)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("4096", 4096),
        ("0", 0),
        ("1k", 1_000),
        ("1K", 1_000),
        ("1KB", 1_000),
        ("64KiB", 65_536),
        ("64kib", 65_536),
        ("1.5 GB", 1_500_000_000),
        (" 2 MiB ", 2_097_152),
        ("1TiB", 2**40),
        ("1Pi", 2**50),
        ("0.1 k", 100),
        ("12B", 12),
    ],
)
def test_sizes_are_parsed(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text", ["", "MB", "-1", "1e9", "1 XB", "1 i", "1.GB", "1,5GB", "nan", "½k"]
)
def test_what_is_no_size_is_refused_by_name(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_size(text)
    assert repr(text) in str(caught.value)
    assert "64KiB" in str(caught.value)


@given(st.integers(0, 10**17))
def test_printed_bytes_parse_back_within_three_digits(size: int) -> None:
    assert parse_size(format_bytes(size)) == pytest.approx(size, rel=0.005)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (999.6, "1.00 kB"),
        (1_500_000_000, "1.50 GB"),
        (999_999, "1.00 MB"),
        (-2_000, "-2.00 kB"),
        (5e18, "5000 PB"),
    ],
)
def test_bytes(count: float, text: str) -> None:
    assert format_bytes(count) == text


def test_rates() -> None:
    assert format_rate(1.5e9) == "1.50 GB/s"
    assert format_rate(2_300, "samples") == "2,300 samples/s"
    assert format_rate(12.34, "batches") == "12.3 batches/s"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0.00"), (9.994, "9.99"), (9.996, "10.0"), (99.96, "100"), (999.6, "1,000")],
)
def test_counts(value: float, text: str) -> None:
    assert format_count(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (4e-9, "0.00 µs"),
        (2.5e-6, "2.50 µs"),
        (0.000_999_7, "1.00 ms"),
        (0.0032, "3.20 ms"),
        (0.9999, "1.00 s"),
        (48, "48.0 s"),
        (119.4, "119 s"),
        (119.6, "2 min 0 s"),
        (125, "2 min 5 s"),
        (3_599.6, "1 h 0 min"),
        (7_500, "2 h 5 min"),
        (-0.25, "-250 ms"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [(0, "0.0 %"), (0.123, "12.3 %"), (0.9994, "99.9 %"), (0.9996, "100 %"), (1.5, "150 %")],
)
def test_shares(share: float, text: str) -> None:
    assert format_share(share) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(8 * 2**20, "8 MiB"), (1536 * 2**10, "1,536 KiB"), (2**30, "1 GiB"), (8_000_001, "8.00 MB")],
)
def test_sizes_that_are_whole_in_binary_units_are_told_in_them(count: int, text: str) -> None:
    assert format_binary(count) == text


def test_names_in_a_row() -> None:
    assert listed(["a"]) == "a"
    assert listed(["a", "b"]) == "a and b"
    assert listed(["a", "b", "c"]) == "a, b and c"
