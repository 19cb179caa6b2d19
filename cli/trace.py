"""Implement `pipeprof trace merge`, which adds a profile to a trace of torch.profiler."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import Any

import click

from pipeprof.cli.output import json_option
from pipeprof.cli.saved import load_profile
from pipeprof.errors import ProfileError, UsageError

EXAMPLE = """\b
Examples:
  pipeprof trace merge log/host.1700000000000.pt.trace.json pipeprof-run/train.json --out merged/
  pipeprof trace merge torch.json run.json --out merged.json.gz --json
"""


@click.group(epilog=EXAMPLE)
def command() -> None:
    """Combine traces. For the trace of one profile, use pipeprof report FILE --trace OUT."""


@command.command(epilog=EXAMPLE)
@click.argument("torch_trace", type=click.Path(path_type=Path))
@click.argument("profile", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), required=True,
              help="Output file, or a folder for a file named like TORCH_TRACE.")  # fmt: skip
@json_option
def merge(torch_trace: Path, profile: Path, out: Path, as_json: bool) -> None:
    """Add the workers of PROFILE to TORCH_TRACE. Both must be of the same run.

    It also repairs the DataLoader time, which TensorBoard otherwise shows as 0.
    """
    import orjson

    from pipeprof.report.trace.merge import merge as merged
    from pipeprof.report.trace.merge import repaired
    from pipeprof.store import write_atomically

    trace = _read(torch_trace)
    whole = merged(trace, load_profile(profile))
    if out.is_dir():
        out = out / torch_trace.name
    if out.exists() and out.samefile(torch_trace):
        raise UsageError(f"--out {out} is the input trace; name another file or folder.")
    data = orjson.dumps(whole)
    write_atomically(out, gzip.compress(data, mtime=0) if out.suffix == ".gz" else data)
    added, repairs = len(whole["traceEvents"]) - len(trace["traceEvents"]), repaired(trace)
    if as_json:
        summary = {"out": str(out), "events_added": added, "waits_repaired": repairs}
        click.echo(orjson.dumps(summary).decode())
    else:
        click.echo(f"{out}: {added:,} events added, {repairs:,} waits repaired.", err=True)


def _read(path: Path) -> dict[str, Any]:
    """Load a trace of torch.profiler, compressed or not. Raises `ProfileError`."""
    import orjson

    try:
        data = path.read_bytes()
        trace = orjson.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    except (EOFError, ValueError, gzip.BadGzipFile, zlib.error):
        raise ProfileError(f"{path} is not JSON, or is cut short.") from None
    except OSError as error:
        raise ProfileError(f"{path} cannot be read: {error.strerror}.") from None
    if not isinstance(trace, dict):
        raise ProfileError(f"{path} is JSON, but not a trace of torch.profiler.")
    return trace
