"""Generate the JSON Schemas of saved and printed results from the types of `pipeprof.model`.

``python -m pipeprof.schema FOLDER`` writes them. The description of a field is the string below it
in the source; where there is none, the unit in its name describes it.
"""

from __future__ import annotations

import ast
import inspect
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import msgspec
import orjson

from pipeprof import model
from pipeprof.store import write_atomically

FILES: Final[dict[str, type[Any]]] = {
    "profile.schema.json": model.Profile,
    "sweep.schema.json": model.SweepResult,
    "comparison.schema.json": model.Comparison,
    "job.schema.json": model.TrainingJob,
}
"""File name in ``docs/`` → the type that it describes."""

_UNITS = {"_per_s": "Per second.", "_s": "Seconds.", "bytes": "Bytes."}


def json_schema(kind: type[Any]) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of files that hold a ``kind``, one of the types in
    `FILES`."""
    generated = msgspec.json.schema(kind)
    definitions = generated["$defs"]
    notes = field_notes()
    for name, definition in definitions.items():
        text = inspect.cleandoc(definition["description"])
        definition["description"] = text.partition("\n\nExamples:")[0]
        for field, schema in definition["properties"].items():
            units = (unit for suffix, unit in _UNITS.items() if field.endswith(suffix))
            if note := notes[name].get(field) or next(units, None):
                schema["description"] = note
    # it has a default in Python, but it identifies the files of pipeprof
    definitions[kind.__name__]["required"].append("schema")
    tag = kind.__dataclass_fields__["schema"].default
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:{tag.replace('.', ':')}",
        "title": tag,
        "description": inspect.cleandoc(model.__doc__ or "").partition("\n\n")[2],
        **generated,
    }


def model_sources() -> list[str]:
    """Return the source of each module of `pipeprof.model`."""
    return [file.read_text() for file in sorted(Path(model.__path__[0]).glob("*.py"))]


def field_notes() -> dict[str, dict[str, str]]:
    """Return class → field → the string below the field in the source of `pipeprof.model`."""
    notes: dict[str, dict[str, str]] = {}
    for node in (node for source in model_sources() for node in ast.parse(source).body):
        if isinstance(node, ast.ClassDef):
            notes[node.name] = {
                field.target.id: inspect.cleandoc(note.value.value)
                for field, note in pairwise(node.body)
                if isinstance(field, ast.AnnAssign)
                and isinstance(field.target, ast.Name)
                and isinstance(note, ast.Expr)
                and isinstance(note.value, ast.Constant)
                and isinstance(note.value.value, str)
            }
    return notes


def render(kind: type[Any]) -> bytes:
    """Return the schema of ``kind`` as the file in ``docs/`` holds it."""
    return orjson.dumps(json_schema(kind), option=orjson.OPT_INDENT_2) + b"\n"


def write(folder: str) -> None:
    """Write every schema into ``folder``. Raises `OutputError`."""
    for name, kind in FILES.items():
        write_atomically(Path(folder, name), render(kind))


if __name__ == "__main__":
    write(sys.argv[1])
