"""Reads that end in a GPU's memory count as stage `read`, here where there may be no GPU."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.cuda.gds

from pipeprof.measure.patches.all_reads import reads_recorded
from pipeprof.measure.stage_timer import Tally, tallied

DATA = bytes(range(250)) * 40


@pytest.fixture
def path(tmp_path: Path) -> str:
    (tmp_path / "data").write_bytes(DATA)
    return str(tmp_path / "data")


def test_storages_that_torch_loads(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch's own class, with what needs a driver replaced by a read into memory."""

    def register(descriptor: int) -> int:  # which is open for direct reads
        return os.open(f"/proc/self/fd/{descriptor}", os.O_RDONLY)

    def load(handle: int, storage: torch.UntypedStorage, offset: int) -> None:
        read = bytearray(os.pread(handle, storage.nbytes(), offset))
        data = torch.frombuffer(read, dtype=torch.uint8)
        torch.tensor([], dtype=torch.uint8).set_(storage).copy_(data)

    monkeypatch.setattr(torch._C, "_gds_register_handle", register)
    monkeypatch.setattr(torch._C, "_gds_deregister_handle", os.close)
    monkeypatch.setattr(torch._C, "_gds_load_storage", load)
    before = torch.cuda.gds.GdsFile.load_storage
    file, tensor = torch.cuda.gds.GdsFile(path, os.O_RDONLY), torch.zeros(1000, dtype=torch.uint8)
    with reads_recorded(), tallied(Tally()) as tally:
        file.load_storage(tensor.untyped_storage(), 10)
    assert bytes(tensor.numpy()) == DATA[10:1010]
    assert (tally.bytes, tally.requests) == (1000, 1)
    assert torch.cuda.gds.GdsFile.load_storage is before
    file.deregister_handle()


def test_files_that_kvikio_reads(path: str) -> None:
    """Without GPUDirect Storage kvikio reads by itself, into the host's memory, too; but it needs
    the library of NVIDIA's driver, ``libcuda.so.1``."""
    kvikio = pytest.importorskip("kvikio")
    buffers = [np.empty(1000, np.uint8) for _ in range(2)]
    with reads_recorded(), kvikio.CuFile(path) as file, tallied(Tally()) as tally:
        try:
            assert file.read(buffers[0], file_offset=10) == 1000
        except RuntimeError as error:
            pytest.skip(f"kvikio cannot read here: {error}")
        assert file.pread(buffers[1]).get() == 1000
    assert [bytes(each) for each in buffers] == [DATA[10:1010], DATA[:1000]]
    assert (tally.bytes, tally.requests) == (2000, 2)
