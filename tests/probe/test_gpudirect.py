"""What a made-up machine lacks for reads into a GPU's memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeprof.probe import gpudirect as probe_gpudirect
from pipeprof.probe.concurrency_ramp import ProbeSpec, probe
from pipeprof.probe.gpudirect import gpudirect
from pipeprof.probe.target import open_target

KNOWN = "beegfs, ext4, gpfs, lustre, nfs, wekafs, xfs"
SOFTWARE = ("an NVIDIA GPU with its driver loaded", "the kernel module nvidia_fs")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with all that it takes; what is mounted at / is for each test to say."""
    monkeypatch.setattr(probe_gpudirect, "_has_library", lambda: True)
    (tmp_path / "proc/driver/nvidia/gpus/0000:65:00.0").mkdir(parents=True)
    (tmp_path / "proc/driver/nvidia-fs").mkdir()
    (tmp_path / "proc/self").mkdir()
    return tmp_path


def lacking(machine: Path, mounted: str, direct: bool = True) -> list[str]:
    """``mounted``: type, device and options, as the kernel shows them."""
    line = f"22 1 0:20 / / rw,relatime shared:1 - {mounted}\n"
    (machine / "proc/self/mountinfo").write_text(line)
    return list(gpudirect("/data", direct, str(machine)).lacking)


@pytest.mark.parametrize(
    "mounted",
    [
        "ext4 /dev/nvme0n1p2 rw,data=ordered",
        "xfs /dev/md0 rw",
        "lustre 10.0.0.1@tcp:/fs rw,lazystatfs",
        "nfs4 10.0.0.1:/data rw,vers=4.2,proto=rdma",
    ],
)
def test_a_machine_with_all_of_it_lacks_nothing(machine: Path, mounted: str) -> None:
    assert lacking(machine, mounted) == []


@pytest.mark.parametrize(
    ("mounted", "missing"),
    [
        ("ext4 /dev/nvme0n1p2 rw,data=journal", "ext4 with data=ordered instead of data=journal"),
        ("ext4 /dev/vda1 rw", "an NVMe device below ext4 instead of /dev/vda1"),
        ("nfs4 10.0.0.1:/data rw,vers=4.2,proto=tcp", "NFS mounted with proto=rdma"),
        ("overlay overlay rw", f"a file system that supports it ({KNOWN}) instead of overlay"),
    ],
)
def test_each_storage_is_asked_for_what_it_lacks(machine: Path, mounted: str, missing: str) -> None:
    assert lacking(machine, mounted) == [missing]


def test_a_file_system_without_direct_reads_is_not_enough(machine: Path) -> None:
    found = lacking(machine, "xfs /dev/nvme0n1 rw", direct=False)
    assert found == ["direct reads, which this file system refuses"]


def test_without_proc_all_is_lacking(tmp_path: Path) -> None:
    found = gpudirect("/data", True, str(tmp_path)).lacking
    assert set(found) >= {*SOFTWARE, "a file system that is known"}


def test_a_machine_without_the_library(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe_gpudirect, "_has_library", lambda: False)
    (missing,) = lacking(machine, "xfs /dev/nvme0n1 rw")
    assert missing.startswith("the library libcufile")


def test_a_probe_of_files_says_what_is_lacking_and_one_of_objects_does_not(
    tmp_path: Path, memory_url: str
) -> None:
    (tmp_path / "data").write_bytes(bytes(1 << 20))
    spec = ProbeSpec(str(tmp_path), seconds=0.2, feed_seconds=0, block_bytes=(4096,))
    found = probe(open_target(spec.url), spec).gpu_direct
    assert found is not None
    if not Path("/proc/driver/nvidia").exists():
        assert SOFTWARE[0] in found.lacking
    assert open_target(memory_url).gpu_direct is None


@pytest.fixture
def memory_url() -> str:
    import fsspec

    url = "memory://gpudirect/data"
    with fsspec.open(url, "wb") as file:
        file.write(bytes(1 << 12))
    return url
