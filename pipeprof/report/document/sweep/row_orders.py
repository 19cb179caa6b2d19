"""Present what orders of rows cost on each data set, and how well they mix."""

from __future__ import annotations

from pipeprof.model import OrderRuns, RowOrders, SweepResult
from pipeprof.report.document import blocks as doc
from pipeprof.report.document.data_sets import DataSet, sets_with
from pipeprof.units import counted, format_bytes, format_count, format_share

_NAME, _TITLE = "row-orders", "What does shuffling cost?"


def row_orders(sweep: SweepResult) -> doc.Section:
    """Return the orders of each data set, and the best mixed that costs nothing; empty if none were
    measured."""
    blocks: list[doc.Block] = []
    for data, measured in _measured(sweep):
        blocks.append(doc.Subheading(data.label))
        blocks.append(_table(measured))
        lines = (_mixing(measured), _choice(measured), *measured.impossible)
        blocks += [doc.Paragraph(line) for line in lines]
        if (free := _free(measured)).order != "none" and data.exists:
            blocks.append(doc.Code(_code(data, free)))
    return doc.section(_NAME, _TITLE, *blocks)


def row_orders_in_brief(sweep: SweepResult) -> doc.Section:
    """Return a sentence for each data set."""
    lines = (
        f"{data.label}: {' '.join((_choice(measured), *measured.impossible))}"
        for data, measured in _measured(sweep)
    )
    return doc.section(_NAME, _TITLE, *map(doc.Paragraph, lines))


def _measured(sweep: SweepResult) -> list[tuple[DataSet, RowOrders]]:
    return [each for each in sets_with(sweep, sweep.row_orders) if each[1].orders]


def _table(measured: RowOrders) -> doc.Table:
    names = ("samples/s", "speed", "95 % ±", "starved", "read/sample", "splits/batch", "in order")
    return doc.Table(
        (doc.Column("order", "text"), *doc.columns(names)),
        tuple(
            doc.row(
                each.order,
                format_count(each.samples_per_s),
                format_share(each.speed),
                format_share(_half_width(each)) if number else "",
                format_share(each.starved_fraction),
                _read(each, measured),
                format_count(each.splits_per_batch),
                format_share(each.neighbours),
            )
            for number, each in enumerate(measured.orders)
        ),
    )


def _read(order: OrderRuns, measured: RowOrders) -> str:
    """Return the bytes read for a sample, where the order decides them. Others read the same, and
    a trial begins and ends anywhere between the large reads of a buffer."""
    decides = order is measured.orders[0] or order.order == "full"
    return format_bytes(order.bytes_per_sample) if decides else ""


def _mixing(measured: RowOrders) -> str:
    """Say what the last columns mean."""
    return (
        f"splits/batch: from how many of the {counted(measured.splits, 'split')} a batch of "
        f"{measured.batch_size} rows draws. Where neighbours in a file are alike, it is worth so "
        "many. In order: the share of its rows that follow the same row in the file."
    )


def _choice(measured: RowOrders) -> str:
    """Say which order mixes best of those that cost nothing, and what better ones cost."""
    first, free = measured.orders[0], _free(measured)
    if len(measured.orders) == 1:
        lines = [f"Only {first.order} could be measured."]
    elif free is first:
        lines = [f"No order that mixes better than {first.order} is as fast."]
    else:
        lines = [f"{free.order} is as fast as {first.order}."]
    if paid := _worth_a_price(measured):
        prices = (f"{each.order} at {format_share(each.speed)}" for each in paid)
        lines.append(f"Mixed better at a part of the speed: {', '.join(prices)}.")
    draws = (
        f"{format_count(each.splits_per_batch)} with {each.order}" for each in (first, free, *paid)
    )
    ideal = format_count(measured.random_splits_per_batch)
    lines.append(
        f"Splits that a batch draws from: {', '.join(dict.fromkeys(draws))}, {ideal} by chance."
    )
    return " ".join(lines)


def _free(measured: RowOrders) -> OrderRuns:
    """Return the order that mixes best of those that are not clearly slower than the first."""
    first, *others = measured.orders
    return max((first, *(each for each in others if each.difference != "slower")), key=_mixed)


def _worth_a_price(measured: RowOrders) -> list[OrderRuns]:
    """Return the orders that mix better than all faster ones, the fastest first."""
    mixed, chosen = _mixed(_free(measured)), []
    for each in sorted(measured.orders, key=lambda each: -each.speed):
        if each.difference == "slower" and _mixed(each) > mixed:
            chosen.append(each)
            mixed = _mixed(each)
    return chosen


def _mixed(order: OrderRuns) -> tuple[float, float]:
    """Return what orders are compared by: the splits of a batch, then rows in file order. Small
    differences are chance."""
    return round(order.splits_per_batch, 1), -round(order.neighbours, 1)


def _half_width(order: OrderRuns) -> float:
    low, high = order.speed_interval
    return (high - low) / 2 / order.speed if order.speed else 0.0


def _code(data: DataSet, order: OrderRuns) -> str:
    return f'dataset = pipeprof.open_dataset("{data.url}", shuffle="{order.order}")'
