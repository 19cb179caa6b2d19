"""One run, told from the verdict down to the evidence."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median

from pipeprof.model import STORAGE_PARTS, Profile, StageStats, WorkerStats
from pipeprof.report.journey import WORKER_STAGES, Row, busy_s, journey
from pipeprof.report.layout import WORST_STYLE, Column, Page, bar, opening_word
from pipeprof.report.phrases import (
    count_range,
    data_source,
    expected,
    gain,
    is_emulated,
    machine,
    pauses_row,
    rule,
    settings,
    share_range,
    stolen,
    times,
)
from pipeprof.report.terminal_making import device_row, making, queue_row, start_up
from pipeprof.report.terminal_requests import requests
from pipeprof.report.terminal_stall import pauses, stall
from pipeprof.units import (
    counted,
    format_bytes,
    format_count,
    format_duration,
    format_rate,
    format_share,
)

_WORKERS_SHOWN = 8


def profile_page(page: Page, profile: Profile) -> None:
    _verdict(page, profile)
    changes(page, profile)
    _stages(page, profile)
    making(page, profile)
    requests(page, profile)
    stall(page, profile)
    pauses(page, profile)
    _ceilings(page, profile)
    _workers(page, profile)
    findings(page, profile)
    how_sure(page, profile)


def _verdict(page: Page, profile: Profile) -> None:
    diagnosis = profile.diagnosis
    page.verdict(opening_word(diagnosis), diagnosis.headline)
    page.gap()
    emulated = " (emulated accelerator)" if _emulated(profile) else ""
    share = f"{format_share(diagnosis.starved_fraction)} of the time{emulated}"
    starved = ("starved", f"{share}, 95 %: {share_range(diagnosis.starved_interval)}")
    rows = [
        *[starved] * diagnosis.has_step,
        ("throughput", _throughput(profile)),
        ("loader", settings(profile.config)),
    ]
    if profile.source is not None:
        rows.append(("data", data_source(profile.source)))
    rows += [row for row in (queue_row(profile), device_row(profile.device)) if row is not None]
    if profile.pauses is not None:
        rows.append(("pauses", pauses_row(profile.pauses)))
    if diagnosis.verdict == "inconclusive" and diagnosis.more_batches is not None:
        more = counted(diagnosis.more_batches, "more batch")
        rows.append(("to settle it", f"run about {more}"))
    if diagnosis.evidence:
        rows.append(("storage", diagnosis.evidence))
    page.pairs(rows)


def _throughput(profile: Profile) -> str:
    figures = profile.throughput
    text = f"{format_rate(figures.samples_per_s, 'samples')}, 95 %: {count_range(figures.interval)}"
    return f"{text}; {format_rate(figures.bytes_per_s)} read" if figures.bytes_per_s else text


def changes(page: Page, profile: Profile) -> None:
    if not profile.recommendations:
        return
    page.heading("What to change")
    for advice in profile.recommendations:
        page.line(f"{advice.setting}: {advice.current} → {advice.proposed}")
        brings = gain(advice, profile.throughput.samples_per_s)
        rows = [("gain", brings), *expected(advice), ("why", advice.why)]
        page.pairs([row for row in rows if row[1]], indent=4)
        if advice.code:
            page.code(advice.code)


def _stages(page: Page, profile: Profile) -> None:
    rows = journey(profile.stages, profile.config.num_workers)
    if not rows and not profile.missing:
        return
    batches = max(profile.measured_batches, 1)
    reads = any(row.stats.bytes or row.stats.requests for row in rows)
    page.heading("Where the time goes", "per batch")
    columns = [Column("stage", right=False), Column("where", right=False, spare=1)]
    columns += [Column("mean"), Column("p50", spare=2), Column("p95", spare=4)]
    columns += [Column("p99"), Column("share")]
    columns += [Column("bytes"), Column("requests", spare=3)] if reads else []
    worst = profile.diagnosis.bottleneck if profile.diagnosis.verdict == "starved" else None
    worst = "read" if worst in STORAGE_PARTS else worst
    page.table(
        columns,
        [_stage_cells(profile, row, batches)[: len(columns)] for row in rows],
        [WORST_STYLE if row.name == worst else "" for row in rows],
    )
    _legend(page, profile, rows)


def _stage_cells(profile: Profile, row: Row, batches: int) -> list[str]:
    stats = row.stats
    name = f"{'  ' * row.nested}{row.name}{' ~' * (stats.source == 'estimated')}"
    if row.name == "step" and _emulated(profile):
        name += " (emulated)"
    known = stats.source != "unknown"
    times_s = (stats.mean_s, stats.p50_s, stats.p95_s, stats.p99_s)
    return [
        name,
        row.where,
        *(format_duration(seconds) if known else "?" for seconds in times_s),
        format_share(row.share) if row.share is not None else "",
        format_bytes(stats.bytes / batches) if stats.bytes else "",
        format_count(stats.requests / batches) if stats.requests else "",
    ]


def _legend(page: Page, profile: Profile, rows: list[Row]) -> None:
    marks = {row.stats.source for row in rows}
    said = []
    if any(row.share is not None for row in rows):
        said += ["shares are of the way from fetch to the step's end, wait passes beside it"]
    said += ["~ estimated"] * ("estimated" in marks)
    said += ["? unknown"] * ("unknown" in marks)
    if said:
        page.line("; ".join(said).capitalize() + ".")
    reasons: dict[str, list[str]] = {}
    for stage, reason in profile.missing.items():
        reasons.setdefault(reason, []).append(stage)
    for reason, stages in reasons.items():
        page.line(f"Not seen: {', '.join(stages)} ({reason}).")


def _ceilings(page: Page, profile: Profile) -> None:
    if not profile.ceilings:
        return
    ordered = sorted(profile.ceilings.items(), key=lambda item: item[1].samples_per_s)
    demand = profile.ceilings.get("accelerator")
    if demand is not None and demand.samples_per_s > 0:
        full, of = demand.samples_per_s, f"1.00× is what the accelerator{_label(profile)} asks"
    else:
        full, of = ordered[-1][1].samples_per_s, "the accelerator's demand is unknown"
        if not profile.diagnosis.has_step:
            of = "the loop has no training step"
    page.heading("The most each part allows", f"samples/s; {of}")
    page.table(
        [
            Column(right=False),
            Column(),
            Column(),
            Column(right=False, spare=1),
            Column(right=False, wraps=True),
        ],
        [
            (
                name,
                format_count(ceiling.samples_per_s),
                times(ceiling.samples_per_s / full) if full > 0 else "",
                bar(ceiling.samples_per_s / full if full > 0 else 0, 16).ljust(16),
                ceiling.formula,
            )
            for name, ceiling in ordered
        ],
    )


def _workers(page: Page, profile: Profile) -> None:
    workers = profile.workers
    if len(workers) < 2:
        return
    rows = [(f"#{worker.index}", worker.batches, worker.stages) for worker in workers]
    note = "mean per batch"
    if len(workers) > _WORKERS_SHOWN:
        by_time = sorted(workers, key=lambda worker: busy_s(worker.stages))
        rows = [
            (f"{what} #{worker.index}", worker.batches, worker.stages)
            for what, worker in (
                ("fastest", by_time[0]),
                ("median", by_time[len(by_time) // 2]),
                ("slowest", by_time[-1]),
            )
        ]
        note = f"{len(workers)} of them; {note}"
    page.heading("Workers side by side", note)
    seen = [s.value for s in WORKER_STAGES if any(s in stages for _, _, stages in rows)]
    longest = max((busy_s(stages) for _, _, stages in rows), default=0.0)
    page.table(
        [
            Column("worker", right=False),
            Column("batches", spare=2),
            *(Column(name) for name in seen),
            Column(right=False, spare=1),
        ],
        [
            (
                name,
                f"{batches:,}",
                *(_mean(stages, stage) for stage in seen),
                bar(busy_s(stages) / longest if longest > 0 else 0, 10),
            )
            for name, batches, stages in rows
        ],
    )
    _uneven(page, workers)


def _uneven(page: Page, workers: tuple[WorkerStats, ...]) -> None:
    """Say so when one worker takes markedly longer for a batch than the others."""
    middle = median(busy_s(worker.stages) for worker in workers)
    slowest = max(workers, key=lambda worker: busy_s(worker.stages))
    ratio = busy_s(slowest.stages) / middle if middle > 0 else 1.0
    if ratio >= 1.25:
        page.line(f"Worker #{slowest.index} takes {times(ratio)} as long as the median worker.")


def _mean(stages: Mapping[str, StageStats], stage: str) -> str:
    return format_duration(stages[stage].mean_s) if stage in stages else ""


def findings(page: Page, profile: Profile) -> None:
    if not profile.findings:
        return
    page.heading("Findings")
    for finding in profile.findings:
        page.line(f"{finding.title} ({finding.code})")
        page.pairs([("seen", finding.evidence), ("fix", finding.fix)], indent=4)


def how_sure(page: Page, profile: Profile) -> None:
    page.heading("How sure")
    warmup = f"{counted(profile.warmup_batches, 'batch')} left out as warm-up"
    measured = f"{counted(profile.measured_batches, 'batch')} in {format_duration(profile.wall_s)}"
    rows = [("measured", f"{measured}, {warmup}")]
    started = start_up(profile)
    if started is not None:
        rows.append(("start-up", started))
    diagnosis = profile.diagnosis
    used = format_share(diagnosis.accelerator_utilisation)
    rows += [
        ("verdict", rule(diagnosis.threshold)),
        ("utilisation", f"{used}{_label(profile)} after warm-up, until the last step's end (AU)"),
        ("cache", f"{profile.cache.state}: {profile.cache.evidence}"),
        ("accelerator", profile.environment.accelerator or "unknown"),
        ("own cost", _own_cost(profile)),
        *stolen(profile),
        ("machine", machine(profile.environment)),
        ("run", f"{profile.name}, {profile.created}"),
    ]
    page.pairs(rows + [("note", note) for note in profile.notes])


def _own_cost(profile: Profile) -> str:
    overhead = profile.overhead
    if overhead.share is None:
        return f"unknown ({overhead.method})"
    each = f", {format_duration(overhead.per_batch_s)} a batch" if overhead.per_batch_s else ""
    return f"{format_share(overhead.share)} of the run{each} ({overhead.method})"


def _emulated(profile: Profile) -> bool:
    return is_emulated(profile.environment.accelerator)


def _label(profile: Profile) -> str:
    return " (emulated)" if _emulated(profile) else ""
