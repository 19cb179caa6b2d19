"""Hosts that read from one server: namespaces of this machine on a bridge, each behind a link of
known rate, and the server behind another one (root, Linux)."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.lab.far import NO_ETAG
from tests.lab.net import PAYLOAD, alone, ip, kill_within, run_command
from tests.s3.server import KEY, SECRET, serving
from tests.support.env import UNWATCHED
from tests.support.requirements import missing

_BRIDGE, _SERVER = "pphosts", "pphosts-server"
_NETWORK = "198.18.78"
"""Of the addresses that are set aside for the testing of networks (RFC 2544)."""


@dataclass(frozen=True)
class LabHosts:
    count: int
    address: str = f"{_NETWORK}.1"
    """Of the server."""
    server: tuple[str, ...] = ("ip", "netns", "exec", _SERVER)
    """To be put before a command that is to run on the server."""
    first: str = f"{_NETWORK}.10"
    """Of the first host."""

    def inside(self, host: int) -> tuple[str, ...]:
        """To be put before a command that is to run on a host."""
        return ("ip", "netns", "exec", _space(host))


def payload(mbit_per_s: float) -> float:
    """Bytes/s of payload of so many Mbit/s on the wire."""
    return mbit_per_s * 1e6 / 8 * PAYLOAD


@contextmanager
def shaped_hosts(mbit_per_s: Sequence[float], server_mbit_per_s: float) -> Iterator[LabHosts]:
    """A host for each rate at which it can be sent to. The server sends at its own rate."""
    hosts = LabHosts(len(mbit_per_s))
    with ExitStack() as stack:
        stack.enter_context(alone())
        _clear()  # what a killed run has left
        stack.callback(_clear)
        try:
            ip("link", "add", _BRIDGE, "type", "bridge")
            ip("address", "add", f"{_NETWORK}.254/24", "dev", _BRIDGE)
            ip("link", "set", _BRIDGE, "up")
            _connect(_SERVER, 1, sends=server_mbit_per_s)
            for host, rate in enumerate(mbit_per_s):
                _connect(_space(host), 10 + host, receives=rate)
        except (OSError, subprocess.CalledProcessError) as error:
            said = str(getattr(error, "stderr", "") or error).strip()
            missing(f"hosts behind shaped links (network namespaces and tbf, as root): {said}")
        yield hosts


def probed_from(
    mbit_per_s: Sequence[float], server_mbit_per_s: float, folder: Path, seconds: float = 40.0
) -> dict[str, Any]:
    """The key ``hosts`` of what `pipeprof probe --json` prints of a real S3 server, started on a
    host for each rate as the tasks of a Slurm step."""
    bucket = folder / "root" / "far"
    bucket.mkdir(parents=True)
    (bucket / "x.bin").write_bytes(os.urandom(32 << 20))
    count = len(mbit_per_s)
    step = {
        "SLURM_JOB_ID": "1", "SLURM_STEP_NUM_TASKS": str(count), "SLURM_LOCALID": "0",
        "SLURM_STEP_TASKS_PER_NODE": f"1(x{count})", "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET,
    }  # fmt: skip
    command = [sys.executable, "-m", "pipeprof", "probe", "s3://far/", "--seconds", str(seconds),
               "--block", "256KiB", "--in-flight", "8", "--feed", "0", "--json",
               "--s3-client", "pyarrow", "--processes", "1"]  # fmt: skip
    with (
        shaped_hosts(mbit_per_s, server_mbit_per_s) as hosts,
        serving(folder / "root", folder / "log", hosts.address, hosts.server, NO_ETAG) as server,
    ):
        meet = {"MASTER_ADDR": hosts.first, "AWS_ENDPOINT_URL": server.endpoint}
        running = [
            subprocess.Popen(
                [*hosts.inside(host), *command],
                stdout=subprocess.PIPE, text=True,
                env=UNWATCHED | step | meet
                | {"SLURM_PROCID": str(host), "SLURM_NODEID": str(host)},
            )
            for host in range(count)
        ]  # fmt: skip
        said = [process.communicate(timeout=200)[0] for process in running]
    assert [process.returncode for process in running] == [0] * count
    assert said[1:] == [""] * (count - 1), "only the first host reports"
    found: dict[str, Any] = json.loads(said[0])["hosts"]
    return found


def _space(host: int) -> str:
    return f"pphosts-{host}"


def _connect(space: str, number: int, sends: float = 0, receives: float = 0) -> None:
    near, far = f"pph{number}a", f"pph{number}b"
    ip("netns", "add", space)
    ip("link", "add", near, "type", "veth", "peer", "name", far)
    ip("link", "set", near, "master", _BRIDGE, "up")
    ip("link", "set", far, "netns", space)
    inside = ("ip", "netns", "exec", space)
    run_command(*inside, "ip", "link", "set", "lo", "up")
    run_command(*inside, "ip", "address", "add", f"{_NETWORK}.{number}/24", "dev", far)
    run_command(*inside, "ip", "link", "set", far, "up")
    for rate, where in ((sends, [*inside]), (receives, [])):
        if rate:
            shape = ("tbf", "rate", f"{rate}mbit", "burst", "64kb", "latency", "200ms")
            device = far if where else near
            run_command(*where, "tc", "qdisc", "replace", "dev", device, "root", *shape)


def _clear() -> None:
    """Nothing of ours stays: no process there, no device, no namespace."""
    with suppress(OSError, subprocess.CalledProcessError):
        spaces = [line.split()[0] for line in ip("netns", "list").splitlines()]
        for space in (each for each in spaces if each.startswith("pphosts-")):
            kill_within(space)
            with suppress(OSError, subprocess.CalledProcessError):
                ip("netns", "delete", space)
    with suppress(OSError, subprocess.CalledProcessError):
        for link in json.loads(ip("-json", "link", "show")):
            if link["ifname"] == _BRIDGE or re.fullmatch(r"pph[0-9]+a", link["ifname"]):
                with suppress(OSError, subprocess.CalledProcessError):
                    ip("link", "delete", link["ifname"])
