"""Pathologies of a machine that lacks something, for real: little shared memory, little memory
left, page-locked memory that is slow to fill."""

import json
import subprocess
import sys

import pytest

from tests.findings.known import profiled, text_of, tiny
from tests.loaders.forms import pretend_accelerator
from tests.support.env import UNWATCHED
from tests.support.requirements import missing

SMALL = """
mount -t tmpfs -o size=64m none /dev/shm
mount -t tmpfs none /sys/fs/cgroup
echo 500000000 > /sys/fs/cgroup/memory.max
echo 400000000 > /sys/fs/cgroup/memory.current
"""
"""64 MiB of shared memory, and 100 MB that the cgroup leaves."""

LOADERS = """
import json, torch
from tests.findings.known import profiled, tiny

def told(make):
    return {finding.code: f"{finding.evidence} {finding.fix}"
            for finding in profiled(6, make, 0.0, num_workers=2).findings}

print(json.dumps([told(lambda index: torch.zeros(2_400_000)), told(tiny)]))
"""


@pytest.fixture(scope="module")
def told(repo):
    """Finding → text, of large batches and of small ones, on a machine that is `SMALL`."""
    make_small = ["unshare", "-rm", "sh", "-ec", f'{SMALL} exec "$@"', "sh"]
    try:
        subprocess.run([*make_small, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        missing("unshare -rm, with which to take memory away, is refused")
    done = subprocess.run(
        [*make_small, sys.executable, "-c", LOADERS],
        cwd=repo, capture_output=True, text=True, timeout=100, env=UNWATCHED,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


PREFETCHED = "2 workers × prefetch 2 × 9.60 MB a batch: 48.0 MB prefetched"


def test_batches_that_hardly_fit_into_shared_memory(told):
    large, small = told
    assert f"{PREFETCHED}. /dev/shm has 67.1 MB in all" in large["shared-memory-too-small"]
    assert "Set prefetch_factor=1 instead of 2" in large["shared-memory-too-small"]
    assert "shared-memory-too-small" not in small


def test_batches_made_ahead_that_take_the_memory_that_is_left(told):
    large, small = told
    assert f"{PREFETCHED}. 100 MB of memory are left" in large["prefetch-memory"]
    assert "prefetch-memory" not in small


@pytest.mark.timed
def test_pinning_that_takes_longer_than_the_step(monkeypatch):
    pretend_accelerator(monkeypatch, pin_s=0.010)
    profile = profiled(40, tiny, 0.002, num_workers=1, pin_memory=True)
    text = text_of(profile, "pin-bound")
    assert "of the stall was pinning: " in text
    assert "pin_memory=False" in text
    assert "pin_memory" in {advice.setting for advice in profile.recommendations}
    assert "num_workers" not in {advice.setting for advice in profile.recommendations}
