from __future__ import annotations

import math
import os
import signal
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import orjson
import pytest
from hypothesis import given, settings

from pipeprof.errors import OutputError, ProfileError
from pipeprof.model import BatchLog, Profile, Stage, SweepResult
from pipeprof.store import dumps, load, loads, save, write_atomically
from tests.samples import sample_profile
from tests.strategies import values
from tests.sweep_samples import sample_sweep

OLD = b"what was there before"


@settings(max_examples=40)
@given(values(Profile) | values(SweepResult))
def test_what_is_saved_is_loaded(result: Profile | SweepResult) -> None:
    assert loads(dumps(result)) == result


def test_a_file_on_disk_is_loaded_as_it_was_saved(tmp_path: Path) -> None:
    for result in (sample_profile(), sample_sweep()):
        result.save(tmp_path / "result.json")
        assert load(tmp_path / "result.json") == result
    assert [file.name for file in tmp_path.iterdir()] == ["result.json"]


def test_a_stage_is_a_key_and_a_numpy_float_a_float() -> None:
    profile = replace(
        sample_profile(), blame={Stage.READ: np.float64(0.25)}, wall_s=np.float64(2.5)
    )
    loaded = loads(dumps(profile))
    assert isinstance(loaded, Profile)
    assert (loaded.blame, loaded.wall_s) == ({"read": 0.25}, 2.5)


def test_a_field_of_a_later_version_is_passed_over() -> None:
    document = {**sample_profile().to_dict(), "temperature": 21}
    assert loads(orjson.dumps(document)) == sample_profile()


def test_a_profile_of_an_earlier_version_says_of_later_fields_that_they_are_unknown() -> None:
    document = sample_profile().to_dict()
    del document["stolen_share"], document["environment"]["rank"]
    del document["batches"]["loose_bytes"]
    loaded = loads(orjson.dumps(document))
    assert isinstance(loaded, Profile)
    assert (loaded.stolen_share, loaded.batches.loose_bytes) == (None, ())
    assert loaded.environment.rank is None


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    ("place", "field"),
    [
        ("Profile.wall_s", lambda number: {"wall_s": number}),
        ("Profile.first_batch_s", lambda number: {"first_batch_s": number}),
        ("Profile.blame.read", lambda number: {"blame": {"read": number}}),
        ("Profile.batches.read_s[1]", lambda number: {"batches": BatchLog(read_s=(None, number))}),
    ],
)
def test_a_number_that_json_lacks_is_named_and_not_saved(
    place: str, field: object, number: float, tmp_path: Path
) -> None:
    assert callable(field)
    profile = replace(sample_profile(), **field(number))
    with pytest.raises(ValueError, match=r"cannot be saved") as caught:
        profile.save(tmp_path / "run.json")
    assert str(caught.value).startswith(f"{place} is {number},")
    assert not list(tmp_path.iterdir())


def test_text_that_is_not_unicode_is_refused(tmp_path: Path) -> None:
    profile = replace(sample_profile(), name=os.fsdecode(b"caf\xe9.csv"))
    with pytest.raises(OutputError, match="surrogates not allowed"):
        profile.save(tmp_path / "run.json")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "is not JSON, or is cut short"),
        (b"PAR1\x00\xff", "is not JSON"),
        (b"NaN", "is not JSON"),
        (b"[]", "not a profile or sweep of pipeprof"),
        (b'"pipeprof.profile/1"', "not a profile or sweep of pipeprof"),
        (b'{"traceEvents": []}', '"schema": "pipeprof.profile/1"'),
        (b'{"schema": 1}', "not a profile or sweep of pipeprof"),
        (b'{"schema": "https://json-schema.org"}', "not a profile or sweep of pipeprof"),
        (b'{"schema": "pipeprof.profile/0"}', "Open it with the version that wrote it"),
        (b'{"schema": "pipeprof.sweep/2"}', "'pipeprof.sweep/2'; this version of pipeprof reads"),
        (b'{"schema": "pipeprof.profile/1"}', "missing required field `name`"),
    ],
)
def test_what_is_no_profile_is_refused(data: bytes, complaint: str, tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    file.write_bytes(data)
    with pytest.raises(ProfileError) as caught:
        load(file)
    assert complaint in str(caught.value)
    assert str(caught.value).startswith(str(file))


def test_a_wrong_value_is_located() -> None:
    data = dumps(sample_profile()).replace(b'"verdict":"starved"', b'"verdict":"hungry"')
    with pytest.raises(ProfileError, match=r"'hungry'.*\$\.diagnosis\.verdict"):
        loads(data, "run.json")


def test_a_file_cut_short_anywhere_is_refused() -> None:
    data = dumps(sample_profile()).rstrip()
    for size in {*range(0, len(data), max(1, len(data) // 200)), len(data) - 1}:
        with pytest.raises(ProfileError, match="cut short"):
            loads(data[:size])


def test_a_place_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path, complaint in [
        (tmp_path / "none.json", "does not exist"),
        (tmp_path, "cannot be read: Is a directory"),
        (tmp_path / "file" / "run.json", "cannot be read: Not a directory"),
    ]:
        with pytest.raises(ProfileError) as caught:
            load(path)
        assert str(caught.value) == f"{path} {complaint}."


@pytest.mark.parametrize(
    ("place", "complaint"),
    [
        ("none/run.json", "No such file or directory"),
        ("file/run.json", "Not a directory"),
        ("folder", "it is not a regular file"),
        (f"{'long' * 100}.json", "File name too long"),
    ],
)
def test_a_place_that_cannot_be_written_is_named(
    place: str, complaint: str, tmp_path: Path
) -> None:
    (tmp_path / "file").write_bytes(OLD)
    (tmp_path / "folder").mkdir()
    with pytest.raises(OutputError) as caught:
        save(sample_profile(), tmp_path / place)
    assert str(caught.value) == f"{tmp_path / place} cannot be written: {complaint}."
    assert {item.name for item in tmp_path.iterdir()} == {"file", "folder"}
    assert (tmp_path / "file").read_bytes() == OLD


def test_a_device_is_left_alone() -> None:
    with pytest.raises(OutputError, match="not a regular file"):
        write_atomically("/dev/null", b"data")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_a_name_may_be_as_long_as_the_disk_allows(tmp_path: Path) -> None:
    write_atomically(tmp_path / ("n" * 255), b"data")
    assert (tmp_path / ("n" * 255)).read_bytes() == b"data"


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600)])
def test_the_umask_is_honoured(umask: int, mode: int, tmp_path: Path) -> None:
    before = os.umask(umask)
    try:
        write_atomically(tmp_path / "run.json", b"data")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "run.json").stat().st_mode) == mode


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "target.json").write_bytes(OLD)
    (tmp_path / "latest.json").symlink_to("target.json")
    write_atomically(tmp_path / "latest.json", b"new")
    assert (tmp_path / "latest.json").is_symlink()
    assert (tmp_path / "target.json").read_bytes() == b"new"


def in_another_process(folder: Path, before: str) -> subprocess.CompletedProcess[str]:
    """Overwrite ``run.json`` with a megabyte there, after running ``before``."""
    (folder / "run.json").write_bytes(OLD)
    code = (
        f"import os, resource, signal, sys\n{before}\n"
        "from pipeprof.store import write_atomically\n"
        "write_atomically('run.json', bytes(10**6))"
    )
    return subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )


def at_the_rename(action: str) -> str:
    return f"sys.addaudithook(lambda event, _: {action} if event == 'os.rename' else None)"


def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    done = in_another_process(tmp_path, "resource.setrlimit(resource.RLIMIT_FSIZE, (2**16, 2**16))")
    assert "OutputError: run.json cannot be written: File too large." in done.stderr
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == {"run.json": OLD}


def test_ctrl_c_before_the_rename_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    done = in_another_process(tmp_path, at_the_rename("signal.raise_signal(signal.SIGINT)"))
    assert "KeyboardInterrupt" in done.stderr
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == {"run.json": OLD}


def test_a_kill_before_the_rename_leaves_the_old_file(tmp_path: Path) -> None:
    done = in_another_process(tmp_path, at_the_rename("os.kill(os.getpid(), signal.SIGKILL)"))
    assert done.returncode == -signal.SIGKILL
    assert (tmp_path / "run.json").read_bytes() == OLD


def test_in_another_process_it_would_succeed(tmp_path: Path) -> None:
    assert in_another_process(tmp_path, "").returncode == 0
    assert (tmp_path / "run.json").read_bytes() == bytes(10**6)
