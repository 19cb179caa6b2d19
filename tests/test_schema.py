from __future__ import annotations

import copy
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from pipeprof import schema
from pipeprof.errors import ProfileError
from pipeprof.model import Comparison, Profile, SweepResult
from pipeprof.store import dumps, loads
from tests.samples import sample_profile
from tests.strategies import values
from tests.sweep_samples import sample_sweep

VALIDATORS = {
    kind: Draft202012Validator(schema.json_schema(kind)) for kind in schema.FILES.values()
}
SAMPLES: list[dict[str, Any]] = [
    orjson.loads(dumps(sample)) for sample in (sample_profile(), sample_sweep())
]


@pytest.mark.parametrize("name", schema.FILES)
def test_the_schemas_in_docs_are_those_of_the_types(name: str, repo: Path) -> None:
    written = (repo / "docs" / name).read_bytes()
    assert written == schema.render(schema.FILES[name]), "run `make docs`"


def test_it_is_written_by_one_command(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "pipeprof.schema", str(tmp_path)], check=True)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == {
        name: schema.render(kind) for name, kind in schema.FILES.items()
    }


@pytest.mark.parametrize("kind", VALIDATORS, ids=lambda kind: kind.__name__)
def test_the_schema_is_valid_and_names_its_files(kind: type[Any]) -> None:
    document = schema.json_schema(kind)
    Draft202012Validator.check_schema(document)
    assert document["title"] == kind.schema
    assert "seconds" in document["description"]
    assert "schema" in document["$defs"][kind.__name__]["required"]


def test_descriptions_of_fields_come_from_the_source() -> None:
    definitions = schema.json_schema(Profile)["$defs"]
    descriptions = {
        (kind, field): part["description"]
        for kind, definition in definitions.items()
        for field, part in definition["properties"].items()
        if "description" in part
    }
    assert descriptions["Profile", "blame"].startswith("Cause → seconds of stall")
    assert descriptions["Diagnosis", "verdict"].startswith("*starved* when the lower end")
    assert descriptions["StageStats", "p95_s"] == "Seconds."
    assert descriptions["Throughput", "batches_per_s"] == "Per second."
    assert ("Profile", "name") not in descriptions


@settings(max_examples=25)
@given(values(Profile) | values(SweepResult))
def test_every_saved_file_is_valid(result: Profile | SweepResult) -> None:
    VALIDATORS[type(result)].validate(orjson.loads(dumps(result)))


@settings(max_examples=10)
@given(values(Comparison))
def test_what_compare_prints_is_valid(comparison: Comparison) -> None:
    VALIDATORS[Comparison].validate(orjson.loads(orjson.dumps(comparison.to_dict())))


def places(value: object, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of every value within ``value``. A list contributes its first item only."""
    items: list[tuple[Any, object]] = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value[:1]))
    return [place for key, item in items for place in [(*path, key), *places(item, (*path, key))]]


@settings(max_examples=200)
@given(
    st.sampled_from(SAMPLES).flatmap(
        lambda document: st.tuples(st.just(document), st.sampled_from(places(document)))
    ),
    st.sampled_from([None, True, -1, 1.5, "text", [], [1], {}, {"read": 1}]),
)
def test_the_schema_and_load_refuse_the_same_damaged_files(
    target: tuple[dict[str, Any], tuple[Any, ...]], wrong: object
) -> None:
    original, (*path, last) = target
    document = copy.deepcopy(original)
    holder: Any = document
    for key in path:
        holder = holder[key]
    holder[last] = wrong
    kind = Profile if original is SAMPLES[0] else SweepResult
    try:
        loads(orjson.dumps(document))
        readable = True
    except ProfileError:
        readable = False
    assert VALIDATORS[kind].is_valid(document) == readable


@pytest.mark.parametrize("field", ["schema", "name", "diagnosis", "batches"])
def test_a_missing_field_is_an_error(field: str) -> None:
    document = {name: value for name, value in SAMPLES[0].items() if name != field}
    assert not VALIDATORS[Profile].is_valid(document)
    with pytest.raises(ProfileError):
        loads(orjson.dumps(document))
