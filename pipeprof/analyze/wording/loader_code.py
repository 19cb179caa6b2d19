"""Write the code to paste that reads a data set, or runs a script, as a sweep's trials did."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Final

from pipeprof.model import LoaderConfig, ReadOptions, SweepSpec

_WIDTH: Final = 88
"""Longest line of the code to paste, in characters."""
_NOT_SAVED: Final = (
    "# the sweep was given --storage-options, which are not saved: add storage_options=…"
)


def loader_code(url: str, config: LoaderConfig, spec: SweepSpec) -> str:
    """Return Python code that reads ``url`` with ``config``, as the trials of ``spec`` did. For a
    sweep over the user's own script or loader it is the command or call with the settings."""
    if spec.own is not None:
        return _code_of_own_loader(config, spec)
    module, function = _function(spec.transform)
    lines = [
        "import pipeprof",
        "from torch.utils.data import DataLoader",
        *([f"from {module} import {function}"] if function else []),
        "",
        *([_NOT_SAVED] if spec.with_options else []),
        *_call("dataset = pipeprof.open_dataset", [repr(url), *_read_options(url, config, spec)]),
    ]
    settings = ["dataset", "batch_size=None", f"num_workers={config.num_workers}"]
    if config.num_workers:
        settings += [f"prefetch_factor={config.prefetch_factor}", "persistent_workers=True"]
    return "\n".join([*lines, *_call("loader = DataLoader", settings)])


def _code_of_own_loader(config: LoaderConfig, spec: SweepSpec) -> str:
    settings = [f"num_workers={config.num_workers}"]
    if config.num_workers:
        settings.append(f"prefetch_factor={config.prefetch_factor}")
    if spec.batch_sizes:
        settings.append(f"batch_size={config.batch_size}")
    if spec.loader is None:
        return "\n".join(
            [f"pipeprof run --set {','.join(settings)} {spec.script}  # or in the script:",
             f"DataLoader(…, {', '.join(settings)})"]
        )  # fmt: skip
    module, function = _function(spec.loader)
    return f"from {module} import {function}\n\nloader = {function}({', '.join(settings)})"


def _function(reference: str | None) -> tuple[str, str]:
    """Split ``"path/module.py:function"`` into the module and the function; empty for ``None``."""
    module, _, function = (reference or "").rpartition(":")
    return module.rpartition("/")[2].removesuffix(".py"), function


def _read_options(url: str, config: LoaderConfig, spec: SweepSpec) -> Iterator[str]:
    """Yield the arguments of ``open_dataset`` that differ from its defaults."""
    yield f"batch_size={config.batch_size}"
    if spec.columns is not None:
        yield f"columns={list(spec.columns)!r}"
    if spec.transform is not None:
        yield f"transform={_function(spec.transform)[1]}"
    if read := _changed_fields(spec.read):
        yield f"read=pipeprof.ReadOptions({read})"
    if spec.on_error != "fail":
        yield f"on_error={spec.on_error!r}"
    if spec.s3_client is not None and url.startswith(("s3://", "s3a://")):
        yield f"storage_options={ {'s3_client': spec.s3_client}!r}"


def _changed_fields(read: ReadOptions) -> str:
    given = ((field.name, getattr(read, field.name), field.default) for field in fields(read))
    return ", ".join(f"{name}={value!r}" for name, value, default in given if value != default)


def _call(function: str, arguments: Sequence[str]) -> list[str]:
    """Lay out a call on one line; a longer one on three, or with a line for each argument."""
    joined = ", ".join(arguments)
    if len(function) + len(joined) + 2 <= _WIDTH:
        return [f"{function}({joined})"]
    if len(joined) + 4 <= _WIDTH:
        return [f"{function}(", f"    {joined}", ")"]
    return [f"{function}(", *(f"    {argument}," for argument in arguments), ")"]
