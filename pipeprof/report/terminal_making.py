"""What making a batch took of the machine, how full the queue was, and what epochs cost."""

from __future__ import annotations

from pipeprof.model import DeviceUse, Epoch, Profile
from pipeprof.report.layout import Column, Page, bar
from pipeprof.units import counted, format_bytes, format_duration, format_share

_MEANING = {
    "cpu": "on a core",
    "system": "  of it in the kernel",
    "run-queue": "wanted a core, had none",
    "blocked": "waited for storage, network or a lock",
    "native-threads": "CPU of other threads, beside",
}


def making(page: Page, profile: Profile) -> None:
    """Nothing when it was not seen."""
    sampled = profile.resources.get("blocked")
    if sampled is None:
        return
    whole_s = sum(
        profile.resources[name].mean_s
        for name in ("cpu", "run-queue", "blocked")
        if name in profile.resources
    )
    page.heading("What making a batch took", f"mean of {counted(sampled.count, 'sampled batch')}")
    rows = [
        (name, text, stats.mean_s)
        for name, text in _MEANING.items()
        if (stats := profile.resources.get(name)) is not None
    ]
    page.table(
        [
            Column(right=False),
            Column(right=False, spare=1),
            Column(),
            Column(),
            Column(right=False, spare=2),
        ],
        [
            (
                f"{'  ' * (name == 'system')}{name}",
                text.strip(),
                format_duration(seconds),
                format_share(seconds / whole_s) if whole_s > 0 else "",
                bar(seconds / whole_s if whole_s > 0 else 0, 30),
            )
            for name, text, seconds in rows
        ],
    )


def queue_row(profile: Profile) -> tuple[str, str] | None:
    depth = profile.queue_depth
    if depth is None:
        return None
    ready = f"{depth.mean:.1f} of {counted(depth.capacity, 'batch')} lay ready"
    none = format_share(depth.empty_share)
    return "queue", f"{ready} when one was asked for; {none} of the times none"


def device_row(device: DeviceUse | None) -> tuple[str, str] | None:
    if device is None:
        return None
    said = []
    if device.batches:
        idle = device.wait_s / (device.wait_s + device.busy_s or 1.0)
        said.append(
            f"by its own events it had nothing to do {format_share(idle)} of "
            f"{counted(device.batches, 'batch')}' time"
        )
    if device.utilisation is not None:
        said.append(f"the driver's trend says {format_share(device.utilisation)} used")
    if device.memory_bytes is not None:
        said.append(f"at most {format_bytes(device.memory_bytes)} of its memory in use")
    return ("device", "; ".join(said)) if said else None


def start_up(profile: Profile) -> str | None:
    """Time to the first batch, and what starting and closing epochs took in all."""
    if profile.first_batch_s is None:
        return None
    text = f"first batch after {format_duration(profile.first_batch_s)}"
    epochs = profile.epochs
    if len(epochs) > 1:
        text += (
            f"; {counted(len(epochs), 'epoch')} began and ended in "
            f"{format_duration(sum(map(boundary_s, epochs)))} of "
            f"{format_duration(sum(epoch.wall_s for epoch in epochs))}"
        )
    return f"{text}, left out too"


def boundary_s(epoch: Epoch) -> float:
    """To start and to close it."""
    return (epoch.first_batch_s or 0.0) + (epoch.closing_s or 0.0)
