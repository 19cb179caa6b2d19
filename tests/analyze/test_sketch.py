"""Running figures: exact while they are few, close when they are many, in bounded room."""

import pickle

import numpy as np
import pytest

from pipeprof.analyze.profile.histogram import Series, Sketch


def lognormal(count: int) -> np.ndarray:
    return np.random.default_rng(7).lognormal(mean=-6, sigma=1.5, size=count)


def test_few_values_are_kept_exactly():
    values = lognormal(1000)
    sketch = Sketch()
    sketch.add(values[:300])
    sketch.add(np.array([np.nan]))
    sketch.add(values[300:])
    stats = sketch.stats("measured", moved=5, requests=2)
    assert (stats.count, stats.bytes, stats.requests) == (1000, 5, 2)
    assert stats.mean_s == pytest.approx(values.mean())
    assert [stats.p50_s, stats.p95_s, stats.p99_s] == pytest.approx(
        np.quantile(values, [0.5, 0.95, 0.99]), rel=1e-12
    )


def test_many_values_keep_their_quantiles_within_one_percent_and_their_sum_exactly():
    values = lognormal(200_000)
    sketch = Sketch()
    for part in np.array_split(values, 37):
        sketch.add(part)
    assert (sketch.count, sketch.total) == (200_000, pytest.approx(values.sum()))
    assert sketch.quantiles(0.05, 0.5, 0.95, 0.99) == pytest.approx(
        np.quantile(values, [0.05, 0.5, 0.95, 0.99]), rel=0.011
    )


@pytest.mark.parametrize("count", [1000, 100_000])
def test_the_sum_of_long_values_is_known(count):
    values = lognormal(count)
    sketch = Sketch()
    sketch.add(values)
    assert sketch.total_above(0.01) == pytest.approx(values[values > 0.01].sum(), rel=0.01)
    assert sketch.total_above(values.max() + 1) == Sketch().total_above(0.0) == 0


def test_its_room_is_bounded():
    sketch = Sketch()
    for _ in range(100):
        sketch.add(lognormal(10_000))
    assert len(pickle.dumps(sketch)) < 50_000


def test_zeros_are_values_and_nothing_is_unknown():
    sketch = Sketch()
    assert np.isnan(sketch.mean)
    assert all(map(np.isnan, sketch.quantiles(0.5)))
    sketch.add(np.zeros(10_000))
    assert sketch.mean == 0
    assert sketch.quantiles(0.5)[0] == pytest.approx(0, abs=1e-8)


def test_a_short_series_is_what_was_put_in():
    series = Series(("a", "b"))
    assert len(series["a"]) == 0
    series.add(np.arange(5.0), np.arange(5.0) * 2)
    series.add(np.arange(5.0, 8), np.arange(5.0, 8) * 2)
    assert series["b"].tolist() == [0, 2, 4, 6, 8, 10, 12, 14]


def test_a_long_series_keeps_its_sums_in_bounded_room():
    series, total = Series(("a", "b")), 0.0
    for start in range(0, 300_000, 4_999):
        part = np.arange(start, start + 4_999, dtype=float)
        series.add(part, np.ones_like(part))
        total += part.sum()
    points = series["a"]
    assert 8_000 < len(points) <= 16_384
    count = series["b"].sum()
    assert 300_000 - 64 < count <= 304_939, "all but the rest of the last stretch"
    assert points.sum() == pytest.approx(total, rel=1e-3)
    assert (np.diff(points / series["b"]) > 0).all(), "in their order"
