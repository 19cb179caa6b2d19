"""Implement `pipeprof size`: the storage, hosts and network that N accelerators need."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeprof.cli.options import INT_LIST
from pipeprof.cli.output import (
    html_option,
    json_option,
    markdown_option,
    print_json,
    print_markdown,
    refuse_clashes,
    write_page,
)
from pipeprof.cli.saved import load_probe, load_profile
from pipeprof.errors import UsageError
from pipeprof.model import Sizing, SizingInput
from pipeprof.sizing.inputs import INPUTS, Input
from pipeprof.units import parse_size
from pipeprof.version import __version__

if TYPE_CHECKING:
    from pipeprof.model import Profile
    from pipeprof.report.document.blocks import Document

EXAMPLE = """\b
Examples:
  pipeprof size --workload unet3d --accelerator b200 --gpus 8,64,512 --gpus-per-node 8
  pipeprof size --profile run.json --gpus 64 --gpus-per-node 8 --explain
  pipeprof size --profile run.json --probe probe.json --gpus 64 --gpus-per-node 8
  pipeprof size --workload retinanet/b200 --gpus 64,512 --gpus-per-node 8 --html sizing.html
  pipeprof size --samples-per-s 2000 --bytes-per-sample 150kB --gpus 1024 --request-bytes 8MiB
      --first-byte-ms 30 --stream-bandwidth 85MB --what-if request-bytes=2x
"""
_REPLACED_INPUTS = {
    "samples_per_s": {"step_s"},
    "dataset_samples": {"dataset_bytes"},
    "request_s": {"first_byte_s", "stream_bandwidth"},
    "request_bytes": {"request_s"},
    "first_byte_s": {"request_s"},
    "stream_bandwidth": {"request_s"},
}
"""Input → others that it replaces where it comes from a better source, because one follows from the
other."""
_SUFFIXES = {"k": 1e3, "M": 1e6, "G": 1e9, "B": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}


def _number(text: str) -> float:
    """Parse ``25``, ``70B`` or ``1.5e24``."""
    scale = _SUFFIXES.get(text[-1:], 1.0)
    return float(text[:-1] if text[-1:] in _SUFFIXES else text) * scale


def _parser(each: Input) -> Any:
    """Return the parser of an option's value, which returns a number in its base unit."""

    def parse(text: str) -> float:
        try:
            if each.kind in ("size", "rate"):
                value = float(parse_size(text.removesuffix("/s")))
            elif text.endswith("%"):
                value = float(text[:-1]) / 100
            else:
                value = _number(text)
        except (ValueError, UsageError):
            shape = {"size": "8MiB", "rate": "85MB", "share": "90%"}.get(each.kind, "25, 1.5M, 70B")
            raise click.BadParameter(f"{text!r} is not a number; write it like {shape}.") from None
        return each.base(value)

    parse.__name__ = each.kind
    return parse


def _add_input_options(command: Any) -> Any:
    """Add an option for each input of the sizing."""
    for each in reversed(INPUTS):
        assumed = f"  [assumed: {each.assumed:g}]" if each.assumed is not None else ""
        command = click.option(
            f"--{each.option}",
            each.name,
            type=_parser(each),
            help=f"{each.meaning[0].upper()}{each.meaning[1:]}.{assumed}",
        )(command)
    return command


@click.command(epilog=EXAMPLE)
@click.option("--profile", "file", default=None, metavar="FILE", help="A saved profile.")
@click.option(
    "--probe", default=None, metavar="FILE",
    help="What `pipeprof probe --json` printed of the existing storage.",
)  # fmt: skip
@click.option(
    "--workload", default=None, metavar="NAME", help="A workload of MLPerf Storage, e.g. unet3d."
)
@click.option("--accelerator", default=None, metavar="NAME", help="Accelerator, e.g. b200.")
@click.option(
    "--gpus", type=INT_LIST(1), required=True, help="Numbers of accelerators, e.g. 8,64,512."
)
@_add_input_options
@click.option(
    "--what-if", default=None, metavar="NAME=2x", help="Change one input, and compare the results."
)
@click.option(
    "--simulate",
    is_flag=True,
    help="Also simulate the cluster over time, to show stragglers; "
    "and from a --profile, a job of ranks like this one.",
)
@click.option("--explain", is_flag=True, help="Show each formula with its numbers and its source.")
@html_option
@markdown_option
@json_option
def command(
    file: str | None,
    probe: str | None,
    workload: str | None,
    accelerator: str | None,
    gpus: tuple[int, ...],
    what_if: str | None,
    simulate: bool,
    explain: bool,
    html: Path | None,
    markdown: bool,
    as_json: bool,
    **numbers: float | None,
) -> None:
    """Size storage, hosts, network and checkpoints for --gpus accelerators.

    Start from a --profile, a --workload, or single figures, and what a --probe of the storage
    measured. An explicit figure overrides all. A required figure without a value is named in the
    report, never guessed.
    """
    from pipeprof.report.terminal.render import print_document
    from pipeprof.sizing.size import size
    from pipeprof.sizing.sources import pick_workload

    refuse_clashes(markdown, as_json, html)
    if file and workload:
        raise UsageError("--profile and --workload exclude each other; give one")
    profile = load_profile(file) if file else None
    given = _collect_inputs(file, profile, probe, workload, accelerator, numbers)
    if workload and html is None and (note := pick_workload(workload, accelerator).note):
        click.echo(note, err=True)  # the HTML page shows it at each number
    changes = (None, what_if) if what_if else (None,)
    sizings = [
        size(given, count, change, simulate, profile) for change in changes for count in gpus
    ]
    if html is not None:
        write_page(_document(sizings, explain=True), html)
    if as_json:
        print_json([sizing.to_dict() for sizing in sizings])
    elif markdown:
        print_markdown(_document(sizings, explain))
    elif html is None:
        print_document(_document(sizings, explain))


def _document(sizings: Sequence[Sizing], explain: bool) -> Document:
    from pipeprof.report.document.sizing import sizing_document

    return sizing_document(
        sizings,
        {each.name: each.option for each in INPUTS},
        created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        version=__version__,
        explain=explain,
    )


def _collect_inputs(
    file: str | None,
    profile: Profile | None,
    probe: str | None,
    workload: str | None,
    accelerator: str | None,
    numbers: dict[str, float | None],
) -> dict[str, SizingInput]:
    """Collect the inputs. The profile or workload overrides tables and the probe, and options
    override all."""
    from pipeprof.sizing import sources
    from pipeprof.sizing.inputs import BY_NAME

    given = sources.from_accelerator(accelerator) if accelerator else {}
    found = sources.from_workload(workload, accelerator) if workload else {}
    if file and profile is not None:
        found = sources.from_profile(profile, file)
    if probe:
        given |= sources.from_probe(load_probe(probe), probe)
    given = _replace(given, found)
    options = {
        name: BY_NAME[name].checked(value, "given")
        for name, value in numbers.items()
        if value is not None
    }
    if not given and not options:
        raise UsageError("give a --profile, a --workload, or figures such as --samples-per-s")
    return _replace(given, options)


def _replace(
    given: dict[str, SizingInput], better: dict[str, SizingInput]
) -> dict[str, SizingInput]:
    """Return the inputs with ``better`` ones in the place of those that they replace."""
    for name in better:
        replaced = _REPLACED_INPUTS.get(name, set())
        given = {each: value for each, value in given.items() if each not in replaced}
    return given | better
