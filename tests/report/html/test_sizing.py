"""The page of a sizing: each number with its formula, and the cluster by size."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeprof.cli.app import run
from pipeprof.model import Sizing
from pipeprof.report.document.blocks import Document, FigureList, Section, Subheading, Table
from pipeprof.report.document.charts import Stacks
from pipeprof.report.document.sizing import sizing_document
from pipeprof.report.html.page import render_html
from pipeprof.sizing.inputs import BY_NAME
from pipeprof.sizing.size import size
from pipeprof.sizing.sources import from_workload
from tests.report.html.conftest import Opener
from tests.report.html.pages import HOSTILE, read
from tests.report.html.test_browser import (
    LOOKS,
    every_chart_is_drawn,
    keep,
    look,
    nothing_is_wider_than_the_page,
)

CREATED = "2026-11-22T10:00:00+00:00"
ASKED = ["size", "--workload", "unet3d/h100", "--gpus", "64,512", "--gpus-per-node", "8"]


def sizings(*gpus: int, simulate: bool = False, **more: float) -> list[Sizing]:
    written = {"gpus_per_node": 8.0, **more}
    given = from_workload("unet3d", "h100") | {
        name: BY_NAME[name].checked(value, "given") for name, value in written.items()
    }
    return [size(given, count, None, simulate) for count in gpus]


def document(found: list[Sizing]) -> Document:
    options = {name: each.option for name, each in BY_NAME.items()}
    return sizing_document(found, options, created=CREATED, version="1")


def section(of: Document, name: str) -> Section:
    return next(each for each in of.sections if each.name == name)


def test_sizings_are_columns_and_each_number_has_its_formula() -> None:
    view = document(sizings(64, 512))
    assert view.title == "What 64 and 512 GPUs need"
    (storage,) = section(view, "part-0").blocks
    assert isinstance(storage, Table)
    assert [column.title for column in storage.columns] == ["", "64 GPUs", "512 GPUs"]
    bandwidth = next(row for row in storage.rows if row.cells[0].text == "read bandwidth")
    assert [cell.text for cell in bandwidth.cells[1:]] == ["183 GB/s", "1.46 TB/s"]
    formulas = section(view, "formulas").blocks
    place = formulas.index(Subheading("read bandwidth per GPU = 2.86 GB/s (2.66 GiB/s)"))
    found = formulas[place + 1]
    assert isinstance(found, FigureList)
    assert [each.value for each in found.figures][:2] == [
        "read bandwidth / gpus", "1.46 TB/s / 512",
    ]  # fmt: skip


def test_a_number_for_one_accelerator_is_labelled_so() -> None:
    """Its label says so, since other numbers are of all accelerators."""
    storage = section(document(sizings(64)), "part-0").blocks[0]
    assert isinstance(storage, Table)
    assert storage.rows[0].cells[0].text == "samples per GPU"


def test_missing_inputs_are_named() -> None:
    page = read(render_html(document(sizings(64))))
    assert "requests in flight: --request-bytes --first-byte-ms --stream-bandwidth" in page
    assert "Checkpoints" not in page, "there is no number for it"
    assert "What 64 GPUs need\n" in page


def test_no_option_and_no_figure_is_broken_in_two() -> None:
    page = render_html(document(sizings(64)))
    assert '<span class="whole">--first-byte-ms</span> <span class="whole">--' in page
    assert '<dd><span class="whole">323 ms</span>, MLPerf Storage' in page


def test_a_cluster_is_drawn_where_it_was_simulated() -> None:
    assert document(sizings(64, 512)).charts() == []
    view = document(sizings(64, 512, simulate=True, storage_bandwidth=5e11))
    (chart,) = view.charts()
    assert isinstance(chart.data, Stacks)
    for shares in chart.data.rows.values():
        assert sum(shares.values()) == pytest.approx(1.0, abs=0.005), "all of the time"
    assert chart.description.startswith("64 GPUs: 100 % at work; 512 GPUs: ")


def test_user_given_names_are_escaped() -> None:
    given = from_workload("unet3d", "h100")
    odd = {"step_s": BY_NAME["step_s"].checked(0.323, HOSTILE)}
    page = render_html(document([size(given | odd, 8)]))
    assert "</script><script>" not in page
    assert "&lt;/script&gt;&lt;script&gt;window.harmed" in page


def test_the_command_writes_it_and_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "sizing.html"
    assert run([*ASKED, "--html", str(out)]) == 0
    assert "What 64 and 512 GPUs need" in out.read_text("utf-8")
    assert len(out.read_bytes()) < 1_500_000
    assert capsys.readouterr() == ("", f"{out}: open it in a browser.\n")
    assert run([*ASKED, "--html", str(tmp_path)]) == 1
    assert "is a folder; name the file to write" in capsys.readouterr().err


@pytest.mark.slow
def test_it_opens_well_on_a_screen_and_on_a_phone(opened: Opener, repo: Path) -> None:
    view = document(sizings(64, 512, 8192, simulate=True, storage_bandwidth=5e11))
    page = opened(render_html(view))
    for theme, width in LOOKS:
        look(page, theme, width)
        nothing_is_wider_than_the_page(page)
        every_chart_is_drawn(page)
        keep(page, repo, f"sizing-{width}-{theme}")
