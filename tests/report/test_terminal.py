"""The terminal report, as a reader sees it.

After a change that is meant to show, write the golden files anew and read their diff:

    PIPEPROF_UPDATE_GOLDEN=1 pytest tests/report/test_terminal.py
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len

from pipeprof.model import Profile, Recommendation, SweepResult
from pipeprof.report.terminal import TerminalRenderer, print_report, render_text
from tests.contracts.report_contract import HOSTILE, ReportContract, Result, renamed, unwrapped
from tests.samples import (
    ENVIRONMENT,
    RECOMMENDATION,
    SWEEP_TRIALS,
    fed_profile,
    sample_conversion,
    sample_profile,
    sample_sweep,
    sample_trial,
    sample_workers,
)

GOLDEN = Path(__file__).parent.parent / "golden"
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


class TestContract(ReportContract):
    def render(self, result: Result) -> str:
        return TerminalRenderer().render(result)


@pytest.mark.parametrize(
    ("name", "result"),
    [
        ("profile", sample_profile()),
        ("sweep", sample_sweep()),
        ("conversion", sample_conversion()),
    ],
)
def test_it_reads_like_the_golden_file(name: str, result: Result) -> None:
    file = GOLDEN / f"{name}.txt"
    if os.environ.get("PIPEPROF_UPDATE_GOLDEN"):
        file.write_text(render_text(result), encoding="utf-8")
    assert render_text(result) == file.read_text(encoding="utf-8")


def results() -> Iterator[Result]:
    for text in HOSTILE:
        yield renamed(sample_profile(), text)
        yield renamed(sample_sweep(), text)
    yield sample_profile()
    yield fed_profile()
    yield sample_sweep()
    yield sample_conversion()
    yield sample_profile(workers=sample_workers(64, slow=3))


@pytest.mark.parametrize("width", [80, 100])
def test_only_code_to_paste_is_wider_than_the_page(width: int) -> None:
    for result in results():
        code = set(code_lines(result))
        for line in render_text(result, width=width).splitlines():
            assert cell_len(line) <= width or line in code


@pytest.mark.parametrize("width", [80, 100])
def test_code_can_be_pasted_as_it_stands(width: int) -> None:
    for result in (sample_profile(), sample_sweep()):
        lines = render_text(result, width=width).splitlines()
        assert set(code_lines(result)) <= set(lines)


def code_lines(result: Result) -> list[str]:
    advice: list[Recommendation | None]
    if isinstance(result, Profile):
        advice = list(result.recommendations)
    else:
        advice = [one.recommendation for one in result.advice]
    return [line for one in advice if one and one.code for line in one.code.splitlines()]


def test_every_table_fits_80_columns_without_cutting_a_cell() -> None:
    inconclusive = sample_trial(starved=0.05, verdict="inconclusive", bottleneck="worker-cpu")
    trials = (*SWEEP_TRIALS, inconclusive)
    for result in (sample_profile(), sample_sweep(trials=trials)):
        assert "…" not in render_text(result, width=80)


def test_colour_changes_nothing_but_colour() -> None:
    for result in (sample_profile(), sample_sweep()):
        coloured = ESCAPE.sub("", render_text(result, color=True))
        stripped = "".join(f"{line.rstrip()}\n" for line in coloured.splitlines())
        assert stripped == render_text(result)
        assert "\x1b" not in render_text(result)


def test_colour_is_for_the_verdict_and_the_stage_to_blame() -> None:
    red = [line for line in render_text(sample_profile(), color=True).splitlines() if "31m" in line]
    assert "STARVED" in red[0]
    assert len(red) == 3
    assert all("decode" in line for line in red[1:])
    assert "31m" not in render_text(fed_profile(), color=True)


def section(report: str, title: str) -> str:
    """From the line that starts with ``title`` to the next heading."""
    found = re.search(rf"^{re.escape(title)}.*?(?=\n\n\S|\Z)", report, re.MULTILINE | re.DOTALL)
    assert found, f"{title} is not in the report"
    return found[0]


def test_shares_of_the_journey_count_nothing_twice() -> None:
    table = section(render_text(sample_profile()), "Where the time goes")
    shares = {
        line.split()[0]: float(share[1])
        for line in table.splitlines()
        if (share := re.search(r"([0-9.]+) %", line))
    }
    in_fetch, in_transfer = {"read", "decode", "transform"}, {"serialise", "pipe", "unpickle"}
    apart = [share for stage, share in shares.items() if stage not in in_fetch | in_transfer]
    assert sum(apart) == pytest.approx(100, abs=0.5)
    assert sum(shares[stage] for stage in in_fetch) <= shares["fetch"]
    assert sum(shares[stage] for stage in in_transfer) <= shares["transfer"] + 0.1
    assert "wait" not in shares


def test_where_nobody_saw_batches_made_no_share_is_claimed() -> None:
    stages = {name: sample_profile().stages[name] for name in ("wait", "step")}
    report = render_text(sample_profile(stages=stages, missing={"fetch": "not a DataLoader"}))
    table = section(report, "Where the time goes")
    assert "%" not in table
    assert "Shares" not in table
    assert "Not seen: fetch (not a DataLoader)." in table


def test_stages_stand_in_the_order_of_the_journey() -> None:
    table = section(render_text(sample_profile()), "Where the time goes").splitlines()[2:]
    names = [line.split()[0] for line in table[:13]]
    assert names == ["fetch", "read", "decode", "transform", "collate", "transfer", "serialise",
                     "pipe", "unpickle", "reorder", "ready", "wait", "step"]  # fmt: skip


def test_estimated_and_unknown_stages_are_marked() -> None:
    stages = dict(sample_profile().stages)
    stages["reorder"] = replace(stages["reorder"], source="unknown")
    table = section(render_text(sample_profile(stages=stages)), "Where the time goes")
    assert re.search(r"^  ready ~ .* 100 µs", table, re.MULTILINE)
    assert re.search(r"^  reorder +main +\? +\? +\? +\?$", table, re.MULTILINE)
    assert "~ estimated; ? unknown." in table


def test_bytes_and_requests_are_per_batch() -> None:
    table = section(render_text(sample_profile()), "Where the time goes")
    assert re.search(r"^    read .* 190 kB +0\.04$", table, re.MULTILINE)


def test_a_run_without_workers_happens_in_main() -> None:
    config = replace(sample_profile().config, num_workers=0, prefetch_factor=None)
    report = render_text(sample_profile(config=config, workers=sample_workers(1)))
    assert re.search(r"fetch +main ", section(report, "Where the time goes"))
    assert "no workers" in report
    assert "Workers side by side" not in report


def test_missing_stages_of_one_reason_share_a_line() -> None:
    missing = {"transfer": "no workers", "reorder": "no workers", "h2d": "no CUDA device"}
    report = render_text(sample_profile(missing=missing))
    assert "Not seen: transfer, reorder (no workers).\n  Not seen: h2d (no CUDA device)." in report


def test_blame_is_sorted_and_sums_to_the_stall() -> None:
    part = section(
        render_text(sample_profile(blame={"read": 3.15, "decode": 9.45})), "What the acc"
    )
    lines = part.splitlines()
    assert "12.6 s of 30.6 s" in lines[0]
    assert lines[1].split()[:4] == ["decode", "9.45", "s", "75.0"]
    assert lines[2].split()[:4] == ["read", "3.15", "s", "25.0"]
    assert lines[1].count("█") == 3 * lines[2].count("█") == 30


def test_without_a_stall_there_is_nobody_to_blame() -> None:
    assert "waited for  " not in render_text(fed_profile(stall_s=0.0, blame={}))


def test_ceilings_are_measured_against_the_demand() -> None:
    part = section(render_text(sample_profile()), "The most each part allows").splitlines()
    by_name = {line.split()[0]: line for line in part[1:]}
    assert next(iter(by_name)) == "workers"
    assert "0.60×" in by_name["workers"]
    assert "1.00×" in by_name["accelerator"]
    assert by_name["workers"].count("█") < by_name["accelerator"].count("█") == 16
    assert by_name["storage-bandwidth"].count("█") == 16, "a bar never leaves its column"


def test_eight_workers_are_listed_and_more_are_summarised() -> None:
    listed = section(render_text(sample_profile(workers=sample_workers(8))), "Workers side")
    assert all(f"#{number} " in listed for number in range(8))
    many = section(render_text(sample_profile(workers=sample_workers(64, slow=41))), "Workers side")
    assert re.search(r"slowest #41 .* 6[0-9]\.[0-9] ms", many)
    assert "64 of them" in many
    assert "Worker #41 takes 1." in many


def test_even_workers_are_not_accused() -> None:
    assert "as long as the median" not in render_text(sample_profile())


def test_what_to_change_says_the_gain_and_how_it_is_known() -> None:
    predicted = render_text(sample_profile())
    assert "num_workers: 2 → 4" in predicted
    assert "predicted 99,800 samples/s (92,300–102,000), +66 %" in predicted

    verified = replace(RECOMMENDATION, verified_samples_per_s=241_000.0)
    assert "measured 241,000 samples/s, 4.00×" in render_text(
        sample_profile(recommendations=(verified,))
    )
    unknown = replace(RECOMMENDATION, predicted_samples_per_s=None, interval=None)
    assert "not predicted" in render_text(sample_profile(recommendations=(unknown,)))


def test_an_inconclusive_run_says_how_much_longer_to_run() -> None:
    diagnosis = replace(sample_profile().diagnosis, verdict="inconclusive", more_batches=340)
    assert "run about 340 more batches" in render_text(sample_profile(diagnosis=diagnosis))


def test_how_sure_names_what_the_figures_rest_on() -> None:
    part = section(render_text(sample_profile(notes=("3 records were lost",))), "How sure")
    for words in (
        "1,800 batches in 30.6 s, 16 batches left out as warm-up",
        "warm: 99.8 % of the pages",
        "emulated: a sleep of 10.0 ms a step",
        "0.4 % of the run, 31.0 µs a batch",
        "58.8 % (emulated)",
        "2 of 16 cores",
        "3 records were lost",
    ):
        assert words in part


def test_our_own_cost_is_unknown_rather_than_nothing() -> None:
    overhead = replace(sample_profile().overhead, share=None, method="not measured")
    assert "unknown (not measured)" in render_text(sample_profile(overhead=overhead))


def trial_lines(sweep: SweepResult) -> list[str]:
    return [line for line in render_text(sweep).splitlines() if re.match(r"  \*? +\d", line)]


def test_a_sweep_marks_the_best_trial_of_each_data_set() -> None:
    lines = trial_lines(sample_sweep())
    assert len(lines) == len(SWEEP_TRIALS)
    assert [number for number, line in enumerate(lines) if "*" in line] == [2, 5]


def test_a_sweep_gives_each_data_set_its_verdict_first() -> None:
    first, second = re.findall(r"^(\S+) +(STARVED|FED) ", render_text(sample_sweep()), re.MULTILINE)
    assert first == ("csv", "STARVED")
    assert second == ("parquet", "FED")


def test_a_setting_that_is_best_already_is_kept() -> None:
    sweep = sample_sweep()
    keep = [
        replace(sweep.advice[0], recommendation=replace(RECOMMENDATION, proposed="2")),
        replace(sweep.advice[1], recommendation=None),
    ]
    report = render_text(replace(sweep, advice=tuple(keep)))
    kept = section(report, "What to set")
    assert "csv: keep 2\n    why " in kept
    assert "    gain" not in kept
    assert "parquet: keep 1 worker, prefetch 2, batch 1024" in report


@pytest.mark.parametrize(
    ("csv", "parquet", "says"),
    [
        ((60_000, 0.4), (100_000, 0.01), "parquet is the fastest: 1.67× the samples/s of csv."),
        ((60_000, 0.4), (60_500, 0.4), "parquet and csv are too close to call."),
        ((100_000, 0.01), (100_100, 0.01), "parquet reads the least, 42 B a sample."),
    ],
)
def test_data_sets_are_compared_as_far_as_the_figures_allow(
    csv: tuple[float, float], parquet: tuple[float, float], says: str
) -> None:
    trials = (
        sample_trial("csv", samples_per_s=csv[0], starved=csv[1]),
        sample_trial("parquet", samples_per_s=parquet[0], starved=parquet[1]),
    )
    report = render_text(sample_sweep(trials=trials, advice=(), planned=2))
    assert says in section(report, "Data sets at their best")


def test_one_data_set_is_not_compared() -> None:
    report = render_text(sample_sweep(trials=SWEEP_TRIALS[:4], advice=sample_sweep().advice[:1]))
    assert "Data sets at their best" not in report


def test_a_sweep_says_what_it_was_asked() -> None:
    spec = replace(sample_sweep().spec, transform="decode.py:decode", columns=("a", "b"))
    part = section(render_text(sample_sweep(spec=spec, notes=("one retry",))), "How sure")
    for words in ("decode.py:decode", "a, b", "one retry", "each of 5.00 s or more"):
        assert words in part


class Terminal(io.TextIOWrapper):
    """A file that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def printed(monkeypatch: pytest.MonkeyPatch, kind: type[io.TextIOWrapper], **settings: str) -> str:
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "COLORTERM", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    encoding = settings.pop("encoding", "utf-8")
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    file = kind(io.BytesIO(), encoding=encoding)
    print_report(sample_profile(), file)
    raw = file.buffer
    assert isinstance(raw, io.BytesIO)
    return raw.getvalue().decode(encoding)


def test_a_terminal_gets_colour_unless_no_color_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b[1;31mSTARVED" in printed(monkeypatch, Terminal)
    assert "\x1b" not in printed(monkeypatch, Terminal, NO_COLOR="1")
    assert "\x1b" not in printed(monkeypatch, Terminal, TERM="dumb")
    assert "\x1b" not in printed(monkeypatch, io.TextIOWrapper)


def test_a_page_is_as_wide_as_the_terminal_but_not_wider_than_100(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def widest(text: str) -> int:
        return max(map(len, ESCAPE.sub("", text).splitlines()))

    assert widest(printed(monkeypatch, Terminal, COLUMNS="84")) <= 84
    assert 84 < widest(printed(monkeypatch, Terminal, COLUMNS="240")) <= 100
    assert printed(monkeypatch, io.TextIOWrapper, COLUMNS="60") == render_text(sample_profile())


def test_an_encoding_without_blocks_gets_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    text = printed(monkeypatch, io.TextIOWrapper, encoding="ascii")
    assert "##########" in section(text, "What the accelerator waited for")
    assert "num_workers: 2 -> 4" in text
    assert "800 us" in text


def test_a_profile_prints_itself() -> None:
    assert str(sample_profile()) == render_text(sample_profile())


def test_a_machine_without_torch_or_known_memory_is_described_all_the_same() -> None:
    bare = replace(ENVIRONMENT, torch=None, ram_bytes=None, cores_visible=2, cores=2)
    report = render_text(sample_profile(environment=bare))
    assert "Linux 6.18 x86_64, 2 cores\n" in report
    assert "torch" not in section(report, "How sure")


def test_settings_that_differ_from_a_plain_loader_are_named() -> None:
    config = replace(
        sample_profile().config,
        num_workers=1, pin_memory=True, persistent_workers=True, in_order=False,
    )  # fmt: skip
    assert (
        "1 worker, prefetch 2, batch 1024, fork, pinned memory, persistent workers, out of order"
        in unwrapped(render_text(sample_profile(config=config)))
    )


def test_a_conversion_is_told_as_multiples_of_the_data_as_it_is() -> None:
    part = section(render_text(sample_conversion()), "What would I gain by converting?")
    rows = {line.split("  ")[1].strip(): line.split() for line in part.splitlines() if "×" in line}
    assert rows["csv as it is"][-6:-2] == ["60,235", "1.00×", "1.00×", "1.00×"]
    assert rows["the same, again"][-4:-2] == ["59,800", "0.99×"]
    assert rows["parquet:zstd on local"][4:8] == ["1.68×", "1.63–1.73", "0.22×", "0.30×"]
    words = unwrapped(part)
    assert "On s3://training-scratch/tmp: parquet:zstd gives 1.06× the samples/s" in words
    assert "tfrecord on s3://training-scratch/tmp was not tried: column 'price'" in words
    assert "17.3 % of the data" in words


def test_what_a_sample_takes_says_what_is_not_known() -> None:
    part = section(render_text(sample_conversion()), "What a sample takes")
    [remote] = [line.split() for line in part.splitlines() if "parquet:zstd on s3" in line]
    assert remote[3:] == [
        "42",
        "B",
        "42",
        "B",
        "?",
        "12.4",
        "µs",
        "6.20",
        "µs",
        "8",
        "14.3",
        "MB/s",
    ]


def test_settings_and_code_are_for_the_data_that_is_there() -> None:
    report = render_text(sample_conversion())
    part = section(report, "What to set")
    assert "csv: keep 2 workers" in part
    assert "out-data" not in part
    kept = replace(sample_conversion().conversion, kept=True)
    assert "Kept: /results/out-data/parquet-zstd" in render_text(sample_conversion(conversion=kept))


def test_a_conversion_with_no_trial_yet_says_so() -> None:
    early = replace(sample_conversion().conversion, baseline=None, control=None, gains=())
    report = render_text(sample_conversion(conversion=early, trials=(), advice=()))
    assert "the data as it is has not been tried" in unwrapped(report)
