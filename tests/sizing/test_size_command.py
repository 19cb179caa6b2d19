"""`pipeprof size`: its table, Markdown and JSON, and what it says beside them."""

import subprocess
import sys

import orjson
import pytest
from click.testing import CliRunner
from markdown_it import MarkdownIt

from pipeprof.cli.app import app
from pipeprof.report.document.sizing import sizing_document
from pipeprof.report.terminal.render import render_terminal
from pipeprof.sizing.size import size
from pipeprof.sizing.sources import from_workload
from tests.samples import sample_profile


def test_the_table_has_a_column_for_each_number_of_accelerators(tmp_path):
    sample_profile().save(tmp_path / "run.json")
    done = CliRunner().invoke(
        app, ["size", "--profile", str(tmp_path / "run.json"), "--gpus", "8,64", "--explain"]
    )
    assert done.exit_code == 0, done.output
    assert "8 GPUs" in done.output
    assert "64 GPUs" in done.output
    assert "gpus × samples per s × bytes per sample × target au" in done.output
    assert "source MLPerf Storage, required read bandwidth" in " ".join(done.output.split())
    assert "Figures that need more input" in done.output
    assert max(map(len, done.output.splitlines())) <= 100


def test_what_has_no_room_beside_the_others_stands_below_them():
    several = [size(from_workload("unet3d", "h100"), 8**n, what_if, False)
               for what_if in (None, "record_bytes=0.5x") for n in range(1, 5)]  # fmt: skip
    document = sizing_document(several, {}, created="", version="", explain=False)
    wide, narrow = (render_terminal(document, width=width) for width in (200, 60))
    assert max(map(len, narrow.splitlines())) <= 60 < max(map(len, wide.splitlines()))
    assert "…" not in narrow
    assert wide.count("read bandwidth per GPU") == 1 < narrow.count("read bandwidth per GPU")
    for cell in wide.split():
        assert cell in narrow


def test_markdown_is_the_same_for_a_ticket():
    asked = ["size", "--workload", "unet3d/h100", "--gpus", "8,64", "--explain", "--markdown"]
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 0, done.output
    html = MarkdownIt("commonmark").enable("table").render(done.output)
    assert "<th" in html
    missing = "Figures that need more input"
    for text in ("8 GPUs", "64 GPUs", "183 GB/s", missing, "MLPerf Storage, required"):
        assert text in html
    both = CliRunner().invoke(app, [*asked, "--json"])
    assert "give one of them" in str(both.exception)


def test_json_is_a_list_of_sizings():
    done = CliRunner().invoke(
        app, ["size", "--workload", "dlrm/b200", "--gpus", "8,64", "--what-if", "gpus=2x", "--json"]
    )
    told = orjson.loads(done.stdout)
    assert [(each["gpus"], each["what_if"]) for each in told] == [
        (8, None), (64, None), (8, "gpus=2x"), (64, "gpus=2x"),
    ]  # fmt: skip
    rates = [
        next(each["value"] for each in one["sections"]["Storage, for all accelerators"]
             if each["name"] == "read_bandwidth")
        for one in told
    ]  # fmt: skip
    assert rates[2] == pytest.approx(2 * rates[0])


def test_who_sizes_by_a_what_if_is_told_so_and_what_the_rules_have():
    ruled = CliRunner().invoke(app, ["size", "--workload", "unet3d/b200", "--gpus", "8"])
    assert ruled.stderr == ""
    asked = ["size", "--workload", "unet3d/h100", "--gpus", "8", "--explain"]
    what_if = CliRunner().invoke(app, asked)
    assert "unet3d/b200, retinanet/b200, retinanet/mi355" in what_if.stderr
    assert "MLPerf Storage v2.0, unet3d/h100, what-if" in " ".join(what_if.stdout.split())


def test_sizing_needs_no_torch():
    check = (
        "import sys; from pipeprof.cli.app import run; "
        "code = run(['size', '--workload', 'unet3d/h100', '--gpus', '8']); "
        "sys.exit(code or ('torch' in sys.modules) or ('pyarrow' in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", check], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
