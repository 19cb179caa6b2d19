"""The page cache of a real disk, and of file systems where it is unknown."""

import mmap
import os
import subprocess
import sys

import pytest

from pipeprof.storage import page_cache
from pipeprof.storage.page_cache import (
    evict,
    filesystem_of,
    read_mounts,
    residency,
    resident_share,
    warm,
)
from tests.support.requirements import missing

PAGES = 512


@pytest.fixture
def file(tmp_path):
    """A file on a disk whose pages are in memory and not yet written."""
    path = tmp_path / "data"
    path.write_bytes(os.urandom(PAGES * mmap.PAGESIZE - 100))
    if residency([str(path)]).reason:
        missing(f"a disk of this machine's own: {residency([str(path)]).reason}")
    return str(path)


def test_what_was_written_is_in_memory_until_it_is_evicted(file):
    assert resident_share([file]) == pytest.approx(1, abs=0.01)
    evict([file])
    assert resident_share([file]) <= 0.01
    warm([file])
    assert resident_share([file]) == pytest.approx(1, abs=0.01)


def test_the_share_is_of_all_pages_of_all_files(file, tmp_path):
    other = tmp_path / "other"
    other.write_bytes(bytes(3 * PAGES * mmap.PAGESIZE))
    evict([str(other)])
    assert resident_share([file, str(other)]) == pytest.approx(0.25, abs=0.01)


def test_cachestat_and_mincore_agree(file):
    libc = page_cache._libc()
    evict([file])
    with open(file, "rb", buffering=0) as opened:
        os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_RANDOM)  # no read-ahead
        for page in (7, 100, 300):
            os.pread(opened.fileno(), 10, page * mmap.PAGESIZE)
        told = page_cache._by_cachestat(libc, opened.fileno())
        if told is None:
            pytest.skip("NOT TESTED: a kernel with cachestat (Linux 6.5)")
        assert told == page_cache._by_mincore(libc, opened.fileno())
        assert 3 <= told < PAGES


def test_a_range_is_in_memory_only_when_all_of_it_is(file):
    evict([file])
    with open(file, "rb", buffering=0) as opened:
        descriptor = opened.fileno()
        if page_cache._by_cachestat(page_cache._libc(), descriptor) is None:
            pytest.skip("NOT TESTED: a kernel with cachestat (Linux 6.5)")
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)  # no read-ahead
        os.pread(descriptor, 3 * mmap.PAGESIZE, 8 * mmap.PAGESIZE)
        page = mmap.PAGESIZE
        assert page_cache.in_memory(descriptor, 8 * page, 3 * page)
        assert page_cache.in_memory(descriptor, 8 * page + 7, 2 * page)
        assert not page_cache.in_memory(descriptor, 8 * page - 1, page)
        assert not page_cache.in_memory(descriptor, 8 * page, 3 * page + 1)
        warm([file])
        assert page_cache.in_memory(descriptor, 5, PAGES * page - 105), "to the last byte"
        assert not page_cache.in_memory(descriptor, 5, PAGES * page), "beyond the end"


def test_an_older_kernel_is_queried_by_mincore(file, monkeypatch):
    monkeypatch.setattr(page_cache, "_by_cachestat", lambda libc, descriptor: None)
    assert residency([file]).share == pytest.approx(1, abs=0.01)
    evict([file])
    assert residency([file]).share <= 0.01


def test_mapped_pages_stay_and_are_reported_in_memory(file):
    with open(file, "rb") as opened, mmap.mmap(opened.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        assert sum(mapped[:: mmap.PAGESIZE]) > 0  # every page is touched
        evict([file])
        assert residency([file]).share == 1


@pytest.mark.parametrize("nothing", ["", "nowhere"])
def test_without_pages_the_share_is_unknown(file, tmp_path, nothing):
    (tmp_path / "empty").write_bytes(b"")
    path = str(tmp_path / (nothing or "empty"))
    evict([path])
    warm([path])
    assert resident_share([path]) is None
    assert residency([path]).share is None
    assert residency([path]).reason


SOMEONE_ELSE = """
import os, sys
from pipeprof.storage import page_cache
libc = page_cache._libc()
descriptor = os.open(sys.argv[1], os.O_RDONLY)
os.fsync(descriptor)
os.seteuid(65534)
assert page_cache._by_mincore(libc, descriptor) is None
page_cache.forget(descriptor)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT TESTED: only root can become someone else")
def test_another_users_file_is_evicted_but_its_share_is_unknown(file, repo):
    os.chmod(file, 0o644)
    subprocess.run([sys.executable, "-c", SOMEONE_ELSE, file], check=True, cwd=repo, timeout=60)
    assert resident_share([file]) <= 0.01


def test_a_system_that_does_not_report_pages(file, monkeypatch):
    monkeypatch.setattr(page_cache, "_libc", lambda: None)
    assert residency([file]).share is None
    assert "does not report" in residency([file]).reason
    assert residency([file]).local


MOUNTS = r"""
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
23 22 0:21 / /proc rw - proc proc rw
30 22 0:40 / /data rw shared:7 master:1 - nfs4 server:/export rw
31 30 8:1 / /data/local rw - xfs /dev/sda1 rw
32 22 0:41 / /data/my\040disk rw - fuse.s3fs s3fs rw
33 22 0:42 / /layers rw - overlay overlay rw,lowerdir=/a
34 22 0:43 / /ram rw - tmpfs tmpfs rw
35 22 8:2 / /twice rw - ext4 /dev/sdb rw
36 22 0:44 / /twice rw - ceph 10.0.0.1:/ rw
cut off
"""


@pytest.fixture
def machine(tmp_path):
    """A /proc of another machine."""
    (tmp_path / "self").mkdir()
    (tmp_path / "self/mountinfo").write_text(MOUNTS)
    return str(tmp_path)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "ext4"),
        ("/database/x", "ext4"),
        ("/data/x", "nfs4"),
        ("/data/local/deep/x", "xfs"),
        ("/data/my disk/x", "fuse.s3fs"),
        ("/twice/x", "ceph"),
    ],
)
def test_a_file_is_on_the_nearest_mount_above(machine, path, kind):
    assert filesystem_of(path, read_mounts(machine)) == kind


@pytest.mark.parametrize(
    ("paths", "share", "words"),
    [
        (["/data/x"], None, "nfs4 may keep caches"),
        (["/layers/x", "/data/my disk/x", "/x"], None, "fuse.s3fs, overlay may keep"),
        (["/ram/x"], 1, "tmpfs holds its files in memory"),
        (["/ram/x", "/data/x"], None, "nfs4"),
    ],
)
def test_only_local_disks_are_trusted(machine, paths, share, words):
    found = residency(paths, machine)
    assert found.share == share
    assert found.local == (share is not None)
    assert words in found.reason


def test_without_proc_nothing_is_known(file, tmp_path):
    found = residency([file], str(tmp_path / "nowhere"))
    assert found.share is None
    assert "file system of the files is unknown" in found.reason
