"""Profiles and sweeps in a notebook, with a real kernel."""

import os
import sys

import pytest

from tests.support.env import UNWATCHED
from tests.support.requirements import missing
from tests.sweep_samples import sample_sweep

WRAP = """
import torch
from torch.utils.data import DataLoader, Dataset
import pipeprof

class Numbers(Dataset):
    def __len__(self):
        return 40
    def __getitem__(self, index):
        return torch.tensor(index)

loader = pipeprof.wrap(DataLoader(Numbers(), 2, num_workers=1), "numbers")
for batch in loader:
    pass
"""
CELLS = [
    WRAP,
    "loader.profile()",
    "pipeprof.load('sweep.json')",
    "loader.profile().to_pandas('batches')[['index', 'delivered_s']]",
]


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """What each cell shows, by MIME type."""
    try:
        import ipykernel  # noqa: F401
        import nbformat
        from nbclient import NotebookClient
    except ImportError as error:
        missing(f"{error.name}, to run a notebook")
    folder = tmp_path_factory.mktemp("notebook")
    sample_sweep().save(folder / "sweep.json")
    new = nbformat.v4
    notebook = new.new_notebook(cells=[new.new_code_cell(source) for source in CELLS])
    with pytest.MonkeyPatch.context() as patch:
        for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR"):
            patch.setenv(name, str(folder / name))
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
        for name in os.environ.keys() - UNWATCHED.keys():
            patch.delenv(name)
        client = NotebookClient(notebook, timeout=100, resources={"metadata": {"path": folder}})
        client.execute()
    nbformat.validate(notebook)
    return [{k: v for each in cell.outputs for k, v in each.get("data", {}).items()}
            for cell in notebook.cells]  # fmt: skip


def test_iterating_shows_nothing(outputs):
    assert outputs[0] == {}


def test_a_profile_shows_itself_and_its_text_is_the_report(outputs):
    _, profile, _, _ = outputs
    assert set(profile) == {"text/html", "text/plain"}
    assert profile["text/html"].startswith("<style>\n.pipeprof-shown")
    assert "Where the time goes" in profile["text/html"]
    assert "numbers" in profile["text/html"]
    assert profile["text/plain"].split()[0] in ("STARVED:", "FED:", "INCONCLUSIVE:", "NO")
    assert len(profile["text/plain"]) < 20_000, "not all of its batches"


def test_a_sweep_shows_itself(outputs):
    _, _, sweep, _ = outputs
    assert "Recommendation" in sweep["text/html"]
    assert sweep["text/plain"] == str(sample_sweep())


def test_tables_are_data_frames(outputs):
    assert "<table" in outputs[3]["text/html"]
    assert outputs[3]["text/plain"].split()[:2] == ["index", "delivered_s"]
