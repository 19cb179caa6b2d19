"""Find where this process runs in its machine: its cores, and the NUMA nodes that they, its device
and its network cards belong to.

Sources: ``/proc/self/status`` and ``numa_maps`` (proc(5), numa(7)), and the kernel's documentation
of ``/sys/devices/system/node`` and of ``numa_node`` of PCI devices.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from pipeprof.model import Placement


def find_placement(root: str = "/", device: str | None = None) -> Placement | None:
    """Return the placement of this process; ``None`` where the system does not tell it.

    Args:
        root: The folder that holds ``proc`` and ``sys``.
        device: PCI address of the accelerator, such as ``0000:3b:00.0``; ``None`` for none.
    """
    with suppress(OSError, ValueError):
        status = Path(root, "proc/self/status").read_text()
        cores = tuple(numbers(_field(status, "Cpus_allowed_list")))
        return Placement(
            cores=cores,
            core_nodes=tuple(_nodes_of(set(cores), Path(root))),
            memory_nodes=tuple(numbers(_field(status, "Mems_allowed_list"))),
            memory_policy=_memory_policy(Path(root)),
            device_node=_node(Path(root, "sys/bus/pci/devices", device)) if device else None,
            nic_nodes=dict(_network_cards(Path(root))),
        )
    return None


def device_address() -> str | None:
    """Return the PCI address of the current CUDA device; ``None`` unless CUDA is in use."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is None or not cuda.is_initialized():
        return None
    properties: Any = cuda.get_device_properties(cuda.current_device())
    names = ("pci_domain_id", "pci_bus_id", "pci_device_id")
    domain, bus, slot = (getattr(properties, name, None) for name in names)
    return None if bus is None else f"{domain or 0:04x}:{bus:02x}:{slot or 0:02x}.0"


def numbers(text: str) -> list[int]:
    """Return the numbers of a list of the kernel, such as ``0-3,8``. Raises ValueError."""
    found: list[int] = []
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        found.extend(range(int(first), int(last or first) + 1))
    return found


def _field(status: str, name: str) -> str:
    match = re.search(rf"^{name}:\s*(\S+)", status, re.MULTILINE)
    if match is None:
        raise ValueError(name)
    return match[1]


def _nodes_of(cores: set[int], root: Path) -> Iterator[int]:
    """Yield the NUMA nodes that hold some of the ``cores``."""
    for folder in sorted(root.glob("sys/devices/system/node/node[0-9]*")):
        if cores & set(numbers((folder / "cpulist").read_text())):
            yield int(folder.name.removeprefix("node"))


def _memory_policy(root: Path) -> str | None:
    """Return how memory is placed, such as ``default`` or ``bind:0``."""
    # the kernel walks all pages of each part of memory that it lists, so the first one is asked for
    with suppress(OSError, IndexError), (root / "proc/self/numa_maps").open("rb", 0) as first:
        return first.read(64).split()[1].decode()
    return None


def _network_cards(root: Path) -> Iterator[tuple[str, int]]:
    """Yield the name and the node of each network card that is up, and of each InfiniBand one."""
    for folder in sorted(root.glob("sys/class/net/*")):
        with suppress(OSError):
            node = _node(folder / "device")
            if node is not None and (folder / "operstate").read_text().strip() == "up":
                yield folder.name, node
    for folder in sorted(root.glob("sys/class/infiniband/*")):
        node = _node(folder / "device")
        if node is not None:
            yield folder.name, node


def _node(device: Path) -> int | None:
    """Return the NUMA node of a device; ``None`` where the machine has but one, or does not say."""
    with suppress(OSError, ValueError):
        node = int((device / "numa_node").read_text())
        return node if node >= 0 else None
    return None
