from __future__ import annotations

import ast
import dataclasses
import inspect
import sys
from enum import Enum
from typing import Any, get_type_hints

import pytest

from pipeprof import model
from pipeprof.model import Span, Stage
from pipeprof.results import METHODS
from pipeprof.schema import field_notes, model_sources
from tests.samples import sample_profile
from tests.sweep_samples import sample_sweep

TYPES = [
    kind
    for _, kind in inspect.getmembers(model, inspect.isclass)
    if kind.__module__.startswith("pipeprof.model.") and not issubclass(kind, Enum)
]
UNITS = ("_s", "bytes")
JOURNEY = (
    "read decode transform fetch collate transfer serialise pipe unpickle reorder pin ready wait "
    "h2d step pause"
)


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.__name__)
def test_every_type_is_frozen_and_has_a_docstring(kind: Any) -> None:
    assert dataclasses.is_dataclass(kind)
    assert kind.__dataclass_params__.frozen
    # without a docstring, dataclass would write the signature there
    assert not kind.__doc__.startswith(f"{kind.__name__}(")


def test_every_number_has_a_unit_in_its_name_or_a_note() -> None:
    """A name means the same in every type, so a note in one of them is enough."""
    notes = {field for fields in field_notes().values() for field in fields}
    bare = [
        f"{kind.__name__}.{name}"
        for kind in TYPES
        for name, hint in get_type_hints(kind).items()
        if "float" in str(hint) and not name.endswith(UNITS) and name not in notes
    ]
    assert not bare


def test_a_profile_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        sample_profile().name = "other"  # type: ignore[misc]


def test_the_model_needs_only_the_standard_library() -> None:
    imported = {
        name
        for source in model_sources()
        for node in ast.walk(ast.parse(source))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [str(node.module)]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    others = {name for name in imported if not name.startswith("pipeprof.model.")}
    assert {name.partition(".")[0] for name in others} <= sys.stdlib_module_names


def test_the_model_declares_the_methods_that_are_bound_to_it() -> None:
    declared: dict[str, dict[str, list[str]]] = {}
    for kind in (node for source in model_sources() for node in ast.parse(source).body):
        for guard in (node for node in getattr(kind, "body", ()) if isinstance(node, ast.If)):
            assert isinstance(kind, ast.ClassDef)
            declared[kind.name] = {
                method.name: [argument.arg for argument in method.args.args[1:]]
                for method in guard.body
                if isinstance(method, ast.FunctionDef)
            }
    bound = {
        kind.__name__: {
            name: list(inspect.signature(method).parameters)[1:]
            for name, method in methods.items()
            if name not in ("__str__", "_repr_pretty_")  # called by Python and by IPython alone
        }
        for kind, methods in METHODS.items()
    }
    bound = {kind: methods for kind, methods in bound.items() if methods}
    assert declared == bound


def test_stages_are_their_names_in_the_order_of_a_batch() -> None:
    assert " ".join(Stage) == JOURNEY
    assert f"{Stage.READ}" == "read"
    assert {"read": 1}[Stage.READ] == 1


def test_a_span_counts_nothing_by_default() -> None:
    span = Span(Stage.READ, 1.0, 2.5)
    assert (span.bytes, span.requests) == (0, 0)


def test_to_dict_holds_plain_values_under_the_names_of_the_fields() -> None:
    document = sample_profile().to_dict()
    assert document["schema"] == "pipeprof.profile/1"
    assert document["diagnosis"]["verdict"] == "starved"
    assert document["stages"]["decode"]["mean_s"] > 0
    assert sample_sweep().to_dict()["trials"][0]["config"]["num_workers"] == 0


def test_printing_a_profile_renders_its_report() -> None:
    printed = " ".join(str(sample_profile()).split())
    assert sample_profile().diagnosis.headline.lower() in printed.lower()
