"""`pipeprof sweep` as a user runs it: real processes, their output and exit codes."""

import json
import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeprof import formats
from pipeprof.cli.app import run
from pipeprof.sweep import trial
from tests.cli.sweeping import QUICK, WAITING, pipeprof


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    table = pa.record_batch({"id": pa.array(range(2000), pa.int64())})
    encoder = formats.get("csv").encoder(table.schema)
    (folder / "x.csv").write_bytes(encoder.write(table) + encoder.finish())
    return str(folder)


@pytest.mark.slow
def test_it_reports_on_stdout_and_progress_on_stderr(data, tmp_path):
    done = pipeprof("sweep", data, *QUICK, "--out", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    assert "Recommendation" in done.stdout
    assert "pipeprof.open_dataset(" in done.stdout
    assert f"Saved in {tmp_path}/out" in done.stdout
    assert "emulated" in done.stdout
    assert done.stderr.count("samples/s") == 2, "a line a trial"
    assert sorted(os.listdir(tmp_path / "out")) == [
        "sweep.json",
        "trial-000.json",
        "trial-001.json",
    ]


@pytest.mark.slow
def test_json_is_all_that_is_on_stdout(data, tmp_path, capsys):
    assert run(["sweep", data, *QUICK, "--out", str(tmp_path / "out"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "pipeprof.sweep/1"
    assert document == json.loads((tmp_path / "out/sweep.json").read_bytes())


def test_the_cache_is_as_asked_for_and_said(data, tmp_path, capsys):
    quick = [*QUICK, "--workers", "0", "--out", str(tmp_path / "out")]
    assert run(["sweep", data, *quick, "--cache", "warm", "--full"]) == 0
    assert "Cache of csv: warm requested, 1 trial " in capsys.readouterr().out
    assert json.loads((tmp_path / "out/sweep.json").read_bytes())["spec"]["cache"] == "warm"


def test_starved_beyond_the_limit_is_exit_code_3_after_the_report(data, tmp_path, capsys):
    limit = ["--workers", "0", "--step-ms", "0", "--fail-if-starved", "50%"]
    assert run(["sweep", data, *QUICK, *limit, "--out", str(tmp_path / "out")]) == 3
    shown = capsys.readouterr()
    assert "more than the 50.0 % allowed" in shown.err
    assert "Recommendation" in shown.out


def test_ctrl_c_keeps_what_was_done_and_tells_how_to_go_on(data, tmp_path):
    """The second trial, which has a worker, does not end by itself."""
    out = tmp_path / "out"
    (tmp_path / "mine.py").write_text(WAITING)
    mine = ["--transform", f"{tmp_path}/mine.py:wait"]
    running = subprocess.Popen(
        [sys.executable, "-m", "pipeprof", "sweep", data, *QUICK, *mine, "--out", str(out)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    while not (tmp_path / "waiting").exists():
        assert running.poll() is None, running.communicate()
        time.sleep(0.02)
    assert (out / "trial-000.json").exists()
    # as a terminal does: to the whole group, workers included
    os.killpg(running.pid, signal.SIGINT)
    _, stderr = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "1 of 2 trials" in stderr
    assert f"pipeprof sweep --resume {out}" in stderr
    assert "Traceback" not in stderr

    (tmp_path / "go").touch()
    done = pipeprof("sweep", "--resume", str(out))
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("samples/s") == 1, "only the trial that was missing"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["{tmp}/nowhere"], 1, "nowhere does not exist"),
        (["{tmp}"], 1, "without data files"),
        ([], 2, "name at least one URL"),
        (["x", "--workers", "-1"], 2, "-1"),
        (["x", "--workers", "two"], 2, "two"),
        (["x", "--batch-size", "0"], 2, "0"),
        (["x", "--trial-time", "0"], 2, "trial-time"),
        (["x", "--accelerator", "resnet50/k80"], 2, "known are unet3d/b200"),
        (["x", "--accelerator", "resnet50/h100", "--step-ms", "3"], 2, "exclude each other"),
        (["x", "--cache", "lukewarm"], 2, "'cold', 'warm', 'as-is'"),
        (["x", "--storage-options", "{{"], 2, "JSON object"),
        (["--resume", "{tmp}/nowhere"], 1, "sweep.json does not exist"),
        (["{data}", "--columns", "prize"], 1, "'prize'"),
        (["{data}", "--local-cache", "{data}/x.csv/a"], 1, "x.csv/a cannot be a local cache"),
        (["{data}", "--local-cache", "{tmp}:much"], 2, "much"),
        (["--loader", "x.py:f", "--local-cache", "{tmp}"], 2, "not for a loader or script of your"),
        (["{data}", "--shuffle", "none,random"], 2, "there is no order 'random'"),
        (["--loader", "x.py:f", "--shuffle", "none"], 2, "not for a loader or script of your own"),
        (["{data}", "--transform", "nowhere.py:f"], 2, "nowhere.py does not exist"),
    ],
)
def test_a_mistake_is_one_sentence_and_an_exit_code(data, tmp_path, arguments, code, words, capsys):
    given = [text.format(tmp=tmp_path, data=data) for text in arguments]
    out = [] if "--resume" in given else ["--out", str(tmp_path / "_out")]
    assert run(["sweep", *given, *out]) == code
    shown = capsys.readouterr()
    assert words in shown.err
    assert "Traceback" not in shown.err
    assert shown.out == ""
    assert not (tmp_path / "_out").exists(), "nothing is left behind"


def test_a_local_cache_is_measured_at_the_best_setting(data, tmp_path, capsys):
    cache, out = tmp_path / "nvme" / "cache", tmp_path / "out"
    asked = ["--workers", "1", "--local-cache", f"{cache}:1GB", "--full", "--out", str(out)]
    assert run(["sweep", data, *QUICK, *asked]) == 0
    shown = capsys.readouterr().out
    assert "What would a local cache bring?" in shown
    assert "later ones, from the cache" in shown
    [measured] = json.loads((out / "sweep.json").read_bytes())["local_cache"].values()
    assert measured["rounds"] == 4
    assert measured["splits"] == 1
    assert measured["cached_bytes"] >= os.path.getsize(f"{data}/x.csv") == measured["dataset_bytes"]
    assert measured["limit_bytes"] == 10**9
    assert measured["share"] == 1
    assert not (tmp_path / "nvme").exists(), "nothing is left behind"


def test_a_local_cache_without_room_is_noted_and_the_rest_is_reported(data, tmp_path, capsys):
    cache, out = tmp_path / "cache", tmp_path / "out"
    asked = ["--workers", "0", "--local-cache", f"{cache}:1kB", "--out", str(out)]
    assert run(["sweep", data, *QUICK, *asked]) == 0
    assert "Recommendation" in capsys.readouterr().out
    saved = json.loads((out / "sweep.json").read_bytes())
    assert saved["local_cache"] == {}
    assert "has no room for a split of each worker, 8.89 kB" in saved["notes"][-1]
    assert not cache.exists()


def test_a_disk_that_fills_up_meanwhile_is_no_measure_of_a_cache(
    data, tmp_path, capsys, monkeypatch
):
    free = iter([10**9, 10**6])
    monkeypatch.setattr(
        "pipeprof.sweep.local_cache.shutil.disk_usage",
        lambda path: SimpleNamespace(free=next(free)),
    )
    cache, out = tmp_path / "cache", tmp_path / "out"
    asked = ["--workers", "0", "--local-cache", str(cache), "--out", str(out)]
    assert run(["sweep", data, *QUICK, *asked]) == 0
    saved = json.loads((out / "sweep.json").read_bytes())
    assert saved["local_cache"] == {}
    assert f"the disk of {cache} filled up meanwhile." in saved["notes"][-1]


@pytest.mark.slow
def test_orders_are_measured_at_the_best_setting(tmp_path, capsys):
    """Two files of which a batch needs some rows each: only the full order has both."""
    (tmp_path / "data").mkdir()
    for number in range(2):
        table = pa.table({"id": pa.array([number] * 4096)})
        pq.write_table(table, tmp_path / "data" / f"{number}.parquet")
    out = tmp_path / "out"
    asked = ["--workers", "0", "--shuffle", "none,buffer:8192,full", "--full", "--out", str(out)]
    assert run(["sweep", str(tmp_path / "data"), *QUICK, *asked]) == 0
    assert "What does shuffling cost?" in capsys.readouterr().out
    [measured] = json.loads((out / "sweep.json").read_bytes())["row_orders"].values()
    none, buffer, full = measured["orders"]
    assert [each["order"] for each in measured["orders"]] == ["none", "buffer:8192", "full"]
    assert none["splits_per_batch"] == 1
    assert none["neighbours"] == pytest.approx(1, abs=0.02)
    for mixed in (buffer, full):
        assert mixed["splits_per_batch"] == pytest.approx(2, rel=0.1)
        assert mixed["neighbours"] < 0.05
    assert measured["splits"] == 2
    assert measured["random_splits_per_batch"] == pytest.approx(1 / (1 / 64 + 63 / 128))
    assert full["bytes_per_sample"] > 20 * none["bytes_per_sample"], "both files for each batch"


@pytest.mark.slow
def test_orders_are_measured_when_a_sweep_is_resumed(data, tmp_path, capsys):
    out = str(tmp_path / "out")
    asked = ["--workers", "0", "--shuffle", "none,blocks", "--max-time", "0.01", "--out", out]
    assert run(["sweep", data, *QUICK, *asked]) == 0
    assert json.loads((tmp_path / "out" / "sweep.json").read_bytes())["row_orders"] == {}
    assert run(["sweep", "--resume", out]) == 0
    [measured] = json.loads((tmp_path / "out" / "sweep.json").read_bytes())["row_orders"].values()
    assert [each["order"] for each in measured["orders"]] == ["none", "blocks"]
    capsys.readouterr()


def test_orders_that_cannot_be_had_are_noted_and_the_rest_is_reported(data, tmp_path, capsys):
    out = tmp_path / "out"
    asked = ["--workers", "0", "--shuffle", "full", "--out", str(out)]
    assert run(["sweep", data, *QUICK, *asked]) == 0
    assert "Recommendation" in capsys.readouterr().out
    saved = json.loads((out / "sweep.json").read_bytes())
    assert saved["row_orders"] == {}
    assert "csv files do not say" in saved["notes"][-1]
    assert run(["sweep", "--resume", str(out)]) == 0
    assert json.loads((out / "sweep.json").read_bytes())["notes"] == saved["notes"], "said once"


def test_a_sweep_whose_first_trial_fails_leaves_nothing(data, tmp_path, capsys):
    (tmp_path / "bad.py").write_text("def crash(batch):\n    raise ValueError('never')\n")
    out = tmp_path / "out"
    arguments = ["--transform", f"{tmp_path}/bad.py:crash", "--out", str(out)]
    assert run(["sweep", data, *QUICK, *arguments]) == 1
    assert "bad.py:2: ValueError: never" in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.slow
def test_resuming_takes_the_client_that_was_chosen_and_says_what_is_not_saved(
    data, tmp_path, monkeypatch, capsys
):
    """The data are local, for which both mean nothing: what stores are opened with is looked at."""
    out, opened, really = tmp_path / "out", [], trial.open_dataset

    def open_dataset(url, **options):
        opened.append(options["storage_options"])
        return really(url, **options)

    monkeypatch.setattr(trial, "open_dataset", open_dataset)
    chosen = ["--s3-client", "s3fs", "--storage-options", '{"key": "hunter2"}']
    assert run(["sweep", data, *QUICK, *chosen, "--max-time", "0.2", "--out", str(out)]) == 0
    assert capsys.readouterr().err.count("1 of 2 trials") == 1
    assert "hunter2" not in (out / "sweep.json").read_text()

    assert run(["sweep", "--resume", str(out), "--s3-client", "pyarrow"]) == 2
    assert "was begun with --s3-client s3fs; use the same" in capsys.readouterr().err
    assert run(["sweep", "--resume", str(out)]) == 0
    shown = capsys.readouterr()
    assert "begun with --storage-options, which are not saved" in shown.err
    assert "add storage_options=" in shown.out
    before, *resumed = opened
    assert before == {"key": "hunter2", "s3_client": "s3fs"}
    assert len(resumed) >= 3, "a trial, one once more, what is left to gain"
    assert all(options == {"s3_client": "s3fs"} for options in resumed)


def test_resuming_with_a_client_where_none_was_chosen(data, tmp_path, capsys):
    out = str(tmp_path / "out")
    assert run(["sweep", data, *QUICK, "--max-time", "0.2", "--out", out]) == 0
    capsys.readouterr()
    assert run(["sweep", "--resume", out, "--s3-client", "s3fs"]) == 2
    assert "was begun without --s3-client" in capsys.readouterr().err


def test_what_can_be_refused_is_refused_before_torch_is_imported():
    script = (
        "import sys; from pipeprof.cli.app import run\n"
        "assert run(['sweep', 'x', '--workers', '-1']) == 2\n"
        "assert run(['sweep']) == 2\n"
        "assert 'torch' not in sys.modules and 'pyarrow' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, timeout=60)


def test_an_output_folder_that_cannot_be_made(data, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert run(["sweep", data, *QUICK, "--out", str(tmp_path / "file/out")]) == 1
    assert "cannot be made: Not a directory" in capsys.readouterr().err


def test_an_accelerator_of_mlperf_by_name(data, tmp_path, capsys):
    code = run(
        ["sweep", data, "--workers", "0", "--accelerator", "cosmoflow/h100", "--batch-size", "1",
         "--trial-time", "0.1", "--warmup-time", "0", "--out", str(tmp_path / "out"), "--json"]
    )  # fmt: skip
    assert code == 0
    document = json.loads(capsys.readouterr().out)
    assert document["spec"]["step_s"] == 0.0035
    assert document["environment"]["accelerator"].startswith("emulated: cosmoflow/h100, a sleep")
