"""What a sweep's report says of the orders of rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pipeprof.model import OrderRuns, RowOrders
from pipeprof.report.document.build import first_screen
from pipeprof.report.terminal.render import render_terminal
from tests.contracts.report_samples import unwrapped
from tests.report.full import full_text, section
from tests.sweep_samples import sample_sweep

URL = "/data/clicks-csv"
TITLE = "What does shuffling cost?"
NONE = OrderRuns("none", 20_000, 0.1, 80.0, 1.0, 0.998, 4, 1.0, (1.0, 1.0), "none")
BLOCKS = replace(NONE, order="blocks", neighbours=0.0, speed=0.99, speed_interval=(0.97, 1.01))
BUFFER = replace(
    NONE, order="buffer:10000", samples_per_s=16_000, splits_per_batch=7.4, neighbours=0.0,
    speed=0.8, speed_interval=(0.768, 0.832), difference="slower",
)  # fmt: skip
MEASURED = RowOrders((NONE, BLOCKS, BUFFER), 40, 512, 37.2, ("full: csv counts no rows",))


def shown(measured: RowOrders) -> str:
    return section(whole(measured), TITLE)


def whole(measured: RowOrders) -> str:
    return full_text(sample_sweep(row_orders={URL: measured}))


def words(*orders: Any) -> str:
    return unwrapped(shown(replace(MEASURED, orders=orders)))


def test_each_order_has_its_speed_and_its_mixing() -> None:
    lines = [" ".join(line.split()) for line in shown(MEASURED).splitlines()]
    assert "none 20,000 100 % 10.0 % 80 B 1.00 99.8 %" in lines
    assert "buffer:10000 16,000 80.0 % 4.0 % 10.0 % 7.40 0.0 %" in lines


def test_the_best_mixed_order_that_is_as_fast_is_advised() -> None:
    text = words(NONE, BLOCKS, BUFFER)
    assert "blocks is as fast as none." in text
    assert "Mixed better at a part of the speed: buffer:10000 at 80.0 %." in text
    assert (
        "Splits that a batch draws from: 1.00 with none, 1.00 with blocks, 7.40 with buffer:10000, "
        "37.2 by chance."
    ) in text
    assert 'open_dataset("/data/clicks-csv", shuffle="blocks")' in whole(MEASURED)


def test_where_every_mixed_order_is_slower_none_is_advised() -> None:
    text = words(NONE, BUFFER)
    assert "No order that mixes better than none is as fast." in text
    assert "shuffle=" not in whole(replace(MEASURED, orders=(NONE, BUFFER)))


def test_where_the_best_mixed_is_as_fast_no_other_has_a_price() -> None:
    text = words(NONE, replace(BUFFER, difference="none", speed=0.99))
    assert "buffer:10000 is as fast as none." in text
    assert "at a part" not in text


def test_an_order_that_a_faster_one_mixes_as_well_as_is_not_named() -> None:
    worse = replace(BUFFER, order="buffer:5000", speed=0.7, splits_per_batch=5.0)
    assert "buffer:10000 at 80.0 %." in words(NONE, BUFFER, worse)


def test_what_the_columns_mean_and_what_cannot_be_had_is_said() -> None:
    text = words(NONE, BUFFER)
    assert "from how many of the 40 splits a batch of 512 rows draws" in text
    assert "full: csv counts no rows" in text


def test_the_first_screen_says_why_an_order_was_not_measured() -> None:
    result = sample_sweep(row_orders={URL: replace(MEASURED, orders=(NONE,))})
    text = unwrapped(render_terminal(first_screen(result)))
    assert "Only none could be measured." in text
    assert "full: csv counts no rows" in text
