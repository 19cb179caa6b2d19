"""Draw rows like a shop's click log: ids, categories, times, prices, correlated features, a label.

The columns compress as real tables do. There are few distinct values drawn by Zipf's law, times
that only grow, prices of two decimals and flags, and eight float32 columns that hardly compress.
Only float32 columns have nulls, because other nulls differ between formats.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipeprof.bench_data.rows import Kind, block_random

_Numbers = npt.NDArray[np.generic]

_MILLISECONDS_PER_ROW = 40
_FIRST_TIMESTAMP_MS = 1_700_000_000_000
_FEATURES = 8

_ONSETS = "b ch d dr f g gr h j k l m n p pl r s sh st t tr v w z"
_NUCLEI = "a e i o u ai ea ou"
_SYLLABLES = [onset + nucleus for onset in _ONSETS.split() for nucleus in _NUCLEI.split()]


def _words(count: int, syllables: int, key: str) -> pa.Array:
    """Return distinct made-up words, which are the same for every seed, like a language."""
    random = block_random(f"words of {key}", 0, 0)
    drawn = random.integers(len(_SYLLABLES), size=(2 * count, syllables)).tolist()
    words = dict.fromkeys("".join(_SYLLABLES[part] for part in parts) for parts in drawn)
    return pa.array(list(words)[:count], pa.string())


_COUNTRIES = pa.array(["US", "IN", "BR", "ID", "GB", "DE", "JP", "MX", "FR", "PH", "VN", "TR", "IT",
                       "ES", "TH", "KR", "PL", "CA", "AR", "NL", "CO", "ZA"])  # fmt: skip
_DEVICES = pa.array(["mobile", "desktop", "tablet", "tv"])
_CATEGORIES = _words(48, 3, "category")
_BRANDS = _words(900, 2, "brand")
_REFERRERS = pc.binary_join_element_wise(_words(120, 3, "referrer"), "example", ".")
_QUERY_WORDS = _words(4000, 2, "query")

_INTEGERS = ("event_id", "timestamp_ms", "user_id", "item_id", "session_length", "quantity")
_STRINGS = ("country", "device", "category", "brand", "referrer", "query")
_FLOATS = ("price", "discount", "rating")
_FLAGS = ("is_weekend", "is_member", "label")


_SCHEMA = pa.schema(
    [(name, pa.int64()) for name in _INTEGERS]
    + [(name, pa.string()) for name in _STRINGS]
    + [(name, pa.float32()) for name in _FLOATS]
    + [(f"feature_{i}", pa.float32()) for i in range(_FEATURES)]
    + [(name, pa.int64()) for name in _FLAGS]
)


def _draw(random: np.random.Generator, numbers: npt.NDArray[np.int64], seed: int) -> dict[str, Any]:
    rows = len(numbers)
    time = _FIRST_TIMESTAMP_MS + numbers * _MILLISECONDS_PER_ROW
    time += random.integers(0, _MILLISECONDS_PER_ROW, rows)
    item = _zipf(random, rows, 200_000)
    price = np.round(np.exp(2.0 + (item % 997) / 250) * random.uniform(0.9, 1.1, rows), 2)
    features = _correlated(random, rows)
    weekend = (time // 86_400_000 + 4) % 7 >= 5
    member = features[:, 0] > 0.4
    chance = 1 / (1 + np.exp(2.2 - features[:, 0] - 0.6 * features[:, 1] - 0.3 * weekend))
    return {
        "event_id": pa.array(numbers),
        "timestamp_ms": pa.array(time),
        "user_id": pa.array(_zipf(random, rows, 1_000_000)),
        "item_id": pa.array(item),
        "session_length": pa.array(random.geometric(0.08, rows)),
        "quantity": pa.array(random.geometric(0.7, rows)),
        "country": _COUNTRIES.take(pa.array(_zipf(random, rows, len(_COUNTRIES)))),
        "device": _DEVICES.take(pa.array(_zipf(random, rows, len(_DEVICES)))),
        "category": _CATEGORIES.take(pa.array(item % len(_CATEGORIES))),
        "brand": _BRANDS.take(pa.array(item % len(_BRANDS))),
        "referrer": _REFERRERS.take(pa.array(_zipf(random, rows, len(_REFERRERS)))),
        "query": _query(random, rows),
        "price": _float32(price),
        "discount": _float32(0.05 * random.integers(1, 11, rows), random.random(rows) < 0.6),
        "rating": _float32(random.integers(2, 11, rows) / 2, random.random(rows) < 0.15),
        **{f"feature_{i}": _float32(features[:, i]) for i in range(_FEATURES)},
        "is_weekend": _flag(weekend),
        "is_member": _flag(member),
        "label": _flag(random.random(rows) < chance),
    }


def _zipf(random: np.random.Generator, rows: int, count: int) -> npt.NDArray[np.int64]:
    """Draw integers 0..count-1, each k with a frequency of about 1 / (k + 1)."""
    return (np.power(count + 1.0, random.random(rows)) - 1).astype(np.int64).clip(0, count - 1)


def _correlated(random: np.random.Generator, rows: int) -> npt.NDArray[np.float32]:
    """Draw columns that share three hidden factors, and have independent noise."""
    mixing = block_random("mixing", 0, 0).normal(size=(3, _FEATURES)).astype(np.float32)
    factors = random.standard_normal((rows, 3), np.float32)
    noise = random.standard_normal((rows, _FEATURES), np.float32)
    columns: npt.NDArray[np.float32] = factors @ mixing + np.float32(0.5) * noise
    return columns


def _query(random: np.random.Generator, rows: int) -> pa.Array:
    """Draw one to three words of text for each row."""
    length = random.integers(1, 4, rows)
    words = [
        _QUERY_WORDS.take(pa.array(_zipf(random, rows, len(_QUERY_WORDS)), mask=length <= i))
        for i in range(3)
    ]
    return pc.binary_join_element_wise(*words, " ", null_handling="skip")


def _float32(values: _Numbers, missing: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    return pa.array(values.astype(np.float32), mask=missing)


def _flag(values: npt.NDArray[np.bool_]) -> pa.Array:
    return pa.array(values.astype(np.int64))


kind = Kind("tabular", _SCHEMA, 189, 16_384, _draw)
