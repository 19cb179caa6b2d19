"""What integrations have in common, without a framework."""

from __future__ import annotations

import os
import sys
from types import ModuleType, SimpleNamespace

import fsspec
import pytest
from torch.utils.data import DataLoader

import pipeprof
from pipeprof.integrations import under_run
from pipeprof.integrations.instance_patches import InstancePatches, as_phase
from pipeprof.integrations.profiled_loaders import ProfiledLoaders, warn_if_too_old
from pipeprof.store import loads
from tests.loaders.forms import Marked
from tests.samples import sample_profile


class Trainer:
    def save(self) -> str:
        return "saved"


def test_a_method_of_one_object_is_replaced_and_put_back() -> None:
    trainer, other, patches = Trainer(), Trainer(), InstancePatches()
    assert patches.replace(trainer, "save", lambda save: lambda: f"twice {save()}")
    assert not patches.replace(trainer, "save", lambda save: save), "it is replaced already"
    assert (trainer.save(), other.save()) == ("twice saved", "saved")
    patches.undo()
    assert trainer.save() == "saved"
    assert vars(trainer) == {}


def test_a_phase_of_the_framework_is_a_pause_by_its_name_also_where_it_fails() -> None:
    def validate() -> None:
        raise KeyError

    loader = pipeprof.wrap(DataLoader(Marked(), 4))
    for number, _ in enumerate(loader):
        if number == 5:
            with pytest.raises(KeyError):
                as_phase(validate, lambda: "validation")()
    assert [(each.name, each.evidence) for each in loader.recording().pause_kinds] == [
        ("validation", "framework")
    ]


def test_a_loader_that_is_made_again_continues_the_profile(capsys, tmp_path) -> None:
    loaders = ProfiledLoaders()
    for _ in range(2):
        list(loaders.wrap(DataLoader(Marked(), 4), "train"))
    assert len(loaders.profiles["train"].epochs) == 2
    loaders.report(tmp_path / "profiles")
    assert "pipeprof: train\n" in capsys.readouterr().err
    assert len(pipeprof.load(tmp_path / "profiles" / "train.json").epochs) == 2


def test_ranks_save_in_folders_of_their_own_and_only_the_first_reports(capsys, tmp_path) -> None:
    loaders = ProfiledLoaders()
    list(loaders.wrap(DataLoader(Marked(), 4), "train"))
    loaders.report(tmp_path, rank=1, ranks=2)
    assert (tmp_path / "rank1" / "train.json").exists()
    assert capsys.readouterr().err.count("\n") == 1


def test_a_folder_that_cannot_be_made_is_said_in_one_line(capsys, tmp_path) -> None:
    loaders = ProfiledLoaders()
    list(loaders.wrap(DataLoader(Marked(), 4), "train"))
    (tmp_path / "file").touch()
    loaders.report(tmp_path / "file" / "profiles", rank=1)
    assert "cannot be created: Not a directory." in capsys.readouterr().err


def test_nothing_that_can_be_measured_is_said_and_not_kept_silent(capsys) -> None:
    loaders = ProfiledLoaders()
    assert loaders.wrap(7, "train") == 7, "what cannot be wrapped is left as it is"
    loaders.report(None)
    assert "no loader was measured" in capsys.readouterr().err


def test_a_loader_that_is_measured_twice_has_one_profile() -> None:
    first, second = ProfiledLoaders(), ProfiledLoaders()
    loader = DataLoader(Marked(), 4)
    first.measure(loader, "train")
    second.measure(loader, "train")
    list(loader)
    assert first.profiles["train"].epochs == second.profiles["train"].epochs


def test_lightning_gets_no_callback_outside_of_run(monkeypatch) -> None:
    assert under_run.lightning_callbacks() == []
    session = SimpleNamespace(is_running=lambda: False)
    monkeypatch.setitem(sys.modules, "pipeprof.loaders.autopatch.session", session)
    assert under_run.lightning_callbacks() == []


def test_a_framework_that_is_not_as_expected_is_left_alone(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("RAY_TRAIN_CALLBACKS", "mine.Callback")
    monkeypatch.setenv(under_run.RAY_OUT, "")  # both are as before afterwards
    unknown = ModuleType("transformers.trainer")
    under_run._add_transformers_callback(unknown)
    under_run._name_checkpoints(unknown, "Fabric", ("save", "load"))
    under_run._profile_ray_workers(str(tmp_path))
    assert os.environ["RAY_TRAIN_CALLBACKS"].startswith("mine.Callback,pipeprof.")
    assert not under_run.has_other_profiles(str(tmp_path))


@pytest.mark.parametrize("where", ["{folder}/profiles", "memory://ray-profiles"])
def test_profiles_of_rays_workers_are_saved_at_a_path_or_a_url(monkeypatch, tmp_path, where):
    out = where.format(folder=tmp_path)
    monkeypatch.setenv(under_run.RAY_OUT, out)
    assert not under_run.has_other_profiles(out)
    saved = sample_profile()
    under_run.save_profile(saved, out, worker=1, number=2)
    assert under_run.has_other_profiles(out)
    with fsspec.open(f"{out}/worker1/loader-2.json", "rb") as file:
        assert loads(file.read()) == saved


@pytest.mark.parametrize(("least", "said"), [("0.0", ""), ("999.1", "999.1 or newer is.")])
def test_a_framework_that_is_too_old_is_named_with_what_is_needed(least, said, capsys) -> None:
    warn_if_too_old("torch", least)
    warn_if_too_old("no-such-package", least)
    err = capsys.readouterr().err
    assert err.count("pipeprof: torch ") == bool(said)
    assert said in err
