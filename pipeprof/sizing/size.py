"""Compute what a cluster needs, from a profile, a named workload or plain figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from pipeprof.errors import UsageError
from pipeprof.model import Profile, Sizing, SizingInput
from pipeprof.sizing.formulas import FORMULAS, SECTIONS
from pipeprof.sizing.inputs import BY_NAME, INPUTS
from pipeprof.sizing.sheet import Sheet
from pipeprof.sizing.simulated import SIMULATED, simulated
from pipeprof.sizing.simulated_job import SIMULATED_JOB, simulated_job

_CLOSE: Final = 0.01
"""Relative difference up to which a given and a computed figure agree."""


def size(
    given: Mapping[str, SizingInput],
    gpus: float,
    what_if: str | None = None,
    simulate: bool = False,
    profile: Profile | None = None,
) -> Sizing:
    """Compute all figures that the ``given`` inputs and the defaults of the others allow.
    ``what_if`` is a change such as ``"bandwidth=2x"``. ``simulate`` the cluster, too, which takes
    seconds, and a job of ranks like that of ``profile``. Raises `UsageError` if figures contradict
    one another, or give no finite result."""
    if not gpus >= 1:
        raise UsageError(f"--gpus is {gpus:g}; it must be at least 1")
    assumed = {
        each.name: each.checked(each.assumed, f"assumed: {each.why}")
        for each in INPUTS
        if each.assumed is not None
    }
    known = {**assumed, **given, "gpus": SizingInput("gpus", gpus, "", "given")}
    if "cache_hit_share" in known:
        known["physical_share"] = _less_hits(known["physical_share"], known["cache_hit_share"])
    plain = Sheet(known)
    _check(known, plain)
    scaled = dict([_change(what_if, plain)]) if what_if else {}
    sheet = Sheet(known, scaled)
    sections = {
        title: tuple(found for each in formulas if (found := sheet.figure(each.name)))
        for title, formulas in SECTIONS.items()
    }
    lacking = {name: missing for name in FORMULAS if (missing := sheet.missing(name))}
    if simulate:
        sections[SIMULATED], unsimulated = simulated(sheet)
        lacking |= unsimulated
        if profile is not None:
            sections[SIMULATED_JOB] = simulated_job(sheet, profile)
    used = {number for each in sections.values() for figure in each for number in figure.numbers}
    inputs = [
        replace(each, value=each.value * scaled.get(name, 1.0))
        for name, each in known.items()
        if name in used or name in given
    ]
    return Sizing(gpus, tuple(inputs), sections, lacking, what_if)


def _less_hits(physical: SizingInput, hits: SizingInput) -> SizingInput:
    """Return the share of reads that neither memory nor the local caches serve."""
    rest = physical.value * (1 - hits.value)
    return replace(physical, value=rest, origin=f"{physical.origin}; less --cache-hit-share")


def _check(known: Mapping[str, SizingInput], sheet: Sheet) -> None:
    """Raise `UsageError` when a given figure contradicts the others."""
    for name in filter(known.__contains__, FORMULAS):
        value, computed = known[name].value, sheet.computed(name)
        if computed is not None and abs(computed / value - 1) > _CLOSE:
            raise UsageError(
                f"--{BY_NAME[name].option} is {value:g} ({known[name].origin}), but the other "
                f"figures make it {computed:g}; leave one of them out"
            )
    ram = known.get("node_ram")
    for name in ("record_bytes", "tensor_bytes"):
        if ram is not None and name in known and known[name].value > ram.value:
            raise UsageError(
                f"--{BY_NAME[name].option} is more than --node-ram: no sample would fit; check both"
            )


def _change(what_if: str, sheet: Sheet) -> tuple[str, float]:
    """Split ``"bandwidth=2x"`` into a number's name and the factor. Raises `UsageError`."""
    written, _, to = what_if.partition("=")
    name = _find(written.strip().replace("-", "_"), sheet)
    value = sheet.value(name)
    try:
        factor = float(to.strip().removesuffix("x"))
        if not to.strip().endswith("x") and value:
            factor /= value
    except ValueError:
        factor = 0.0
    if not factor > 0:
        raise UsageError(f"--what-if {what_if!r} is not a change; write it like bandwidth=2x")
    return name, factor


def _find(written: str, sheet: Sheet) -> str:
    """Return the known number with this name, or the only one that ends with it. Raises
    `UsageError` where there is none, or more than one."""
    names = [name for name in (*BY_NAME, *FORMULAS, "gpus") if sheet.value(name) is not None]
    names = list(dict.fromkeys(names))
    found = [name for name in names if name in (written, f"storage_{written}")] or [
        name for name in names if written and name.endswith(written)
    ]
    given = [name for name in found if name in BY_NAME]  # inputs rather than computed numbers
    if len(given or found) == 1:
        return (given or found)[0]
    if found:
        raise UsageError(f"--what-if {written}: which of {_listed(given or found)}?")
    raise UsageError(f"--what-if {written}: no such number is known; known are {_listed(names)}")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(name.replace("_", "-") for name in names))
