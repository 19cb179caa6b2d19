"""The manifests of ``examples/cluster`` for Kubernetes, Kubeflow and KubeRay."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from pipeprof.cli.app import app

VERSION = "1.33"
NAMES = ("kubernetes_job", "kubeflow_pytorchjob", "kuberay_rayjob")


def documents(name: str, repo: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((repo / f"examples/cluster/{name}.yaml").read_text()))


def found(value: Any, key: str) -> Iterator[Any]:
    """Yield what each ``key`` in ``value`` holds, at any depth."""
    if isinstance(value, dict):
        for name, each in value.items():
            if name == key:
                yield each
            yield from found(each, key)
    elif isinstance(value, list):
        for each in value:
            yield from found(each, key)


@pytest.mark.parametrize("name", NAMES)
def test_kubernetes_knows_each_field(name: str, repo: Path) -> None:
    """The outer part of Kubeflow's and KubeRay's resources has schemas of its own, not shipped."""
    for document in documents(name, repo):
        if document["kind"] in ("Job", "Service"):
            kubernetes_validate.validate(document, VERSION, strict=True)
        for template in found(document, "template"):
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, **template}
            kubernetes_validate.validate(pod, VERSION, strict=True)


def test_a_field_that_is_none_is_found(repo: Path) -> None:
    _, job = documents("kubernetes_job", repo)
    job["spec"]["completionMood"] = "Indexed"
    with pytest.raises(kubernetes_validate.ValidationError, match="completionMood"):
        kubernetes_validate.validate(job, VERSION, strict=True)


@pytest.mark.parametrize("name", NAMES)
def test_their_commands_have_the_options_that_they_use(name: str, repo: Path) -> None:
    lines: list[list[str]] = []
    for document in documents(name, repo):
        lines += map(shlex.split, found(document, "entrypoint"))
        for container in (each for group in found(document, "containers") for each in group):
            words = [*container.get("command", []), *container.get("args", [])]
            lines.append([part for word in words for part in shlex.split(word)])
    commands = [words for words in lines if "pipeprof" in words]
    assert commands
    for words in commands:
        verb, *arguments = words[words.index("pipeprof") + 1 :]
        command = app.get_command(None, verb)  # type: ignore[arg-type]
        assert command is not None
        command.make_context(verb, arguments)
