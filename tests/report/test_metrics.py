"""Flat figures of a profile: all that are known, as TensorBoard and MLflow accept them."""

import json
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from math import isfinite, nan

import pytest

from pipeprof.model import Overhead, Profile
from tests.request_samples import sample_requests
from tests.samples import fed_profile, sample_profile
from tests.support.env import UNWATCHED
from tests.support.requirements import missing


def test_figures_are_those_of_the_profile():
    profile = sample_profile(requests=sample_requests())
    found = profile.metrics()
    assert found["pipeprof/starved_fraction"] == profile.diagnosis.starved_fraction
    assert found["pipeprof/starved_fraction_high"] == profile.diagnosis.starved_interval[1]
    assert found["pipeprof/samples_per_s"] == profile.throughput.samples_per_s
    assert found["pipeprof/stages/decode/p95_s"] == profile.stages["decode"].p95_s
    assert found["pipeprof/requests/count"] == profile.requests.count
    for name, ceiling in profile.ceilings.items():
        assert found[f"pipeprof/ceilings/{name}/samples_per_s"] == ceiling.samples_per_s
    shares = [value for name, value in found.items() if name.startswith("pipeprof/blame/")]
    assert sum(shares) == pytest.approx(1)


@pytest.mark.parametrize("profile", [sample_profile(), fed_profile()], ids=["starved", "fed"])
def test_every_figure_is_a_finite_float_under_its_prefix(profile):
    found = profile.metrics("val/")
    assert found
    assert all(name.startswith("val/") for name in found)
    assert all(type(value) is float and isfinite(value) for value in found.values())


def test_unknown_figures_are_left_out():
    profile: Profile = sample_profile(
        measured_batches=0, first_batch_s=None, queue_depth=None, requests=None,
        overhead=Overhead(None, None, "not measured"),
    )  # fmt: skip
    profile = replace(profile, ceilings={
        name: replace(ceiling, samples_per_s=nan) for name, ceiling in profile.ceilings.items()
    })  # fmt: skip
    found = profile.metrics("")
    assert found["measured_batches"] == 0
    unknown = {"starved_fraction", "samples_per_s", "first_batch_s", "queue/mean",
               "requests/count", "overhead_share"}  # fmt: skip
    assert not unknown & set(found)
    assert not [name for name in found if name.startswith("ceilings/")]


def test_tensorboard_keeps_them_as_scalars(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from torch.utils.tensorboard import SummaryWriter

    found = sample_profile().metrics()
    with SummaryWriter(str(tmp_path)) as writer:
        for name, value in found.items():
            writer.add_scalar(name, value, global_step=3)
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    assert set(events.Tags()["scalars"]) == set(found)
    [event] = events.Scalars("pipeprof/starved_fraction")
    assert (event.step, event.value) == (3, pytest.approx(found["pipeprof/starved_fraction"]))


LOG = """
import json, mlflow, pipeprof
profile = pipeprof.load("run.json")
mlflow.set_tracking_uri("file:runs")
with mlflow.start_run() as run:
    mlflow.log_metrics(profile.metrics(), step=3)
client = mlflow.MlflowClient()
kept = client.get_run(run.info.run_id).data.metrics
(entry,) = client.get_metric_history(run.info.run_id, "pipeprof/starved_fraction")
print(json.dumps([kept, entry.step]))
"""


@pytest.mark.slow
def test_mlflow_keeps_them_as_metrics(tmp_path):
    if find_spec("mlflow") is None:
        missing("mlflow-skinny")
    profile = sample_profile(requests=sample_requests())
    profile.save(tmp_path / "run.json")
    environment = {
        **UNWATCHED,
        "MLFLOW_ALLOW_FILE_STORE": "true",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "GIT_PYTHON_REFRESH": "quiet",
    }
    # in a process of its own: it starts threads, and changes how warnings are shown
    done = subprocess.run(
        [sys.executable, "-c", LOG], cwd=tmp_path, env=environment, capture_output=True, text=True,
        timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    kept, step = json.loads(done.stdout.splitlines()[-1])
    assert kept == profile.metrics()
    assert step == 3
