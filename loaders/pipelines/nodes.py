"""Time the nodes of torchdata.nodes: the functions of its mappers, and its sources.

A mapper hands its function to its threads when an iterator begins, so timers are attached before
that. A worker process has a copy of the function, which cannot be timed from here.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from pipeprof.loaders.pipelines.meters import Attached, StageMeter, Timers, attach, function_name
from pipeprof.measure.call_timer import CallTimer, TimedCall
from pipeprof.measure.tracebacks import hide_our_frames
from pipeprof.model import TRAINING_LOOP

_LIBRARY = "torchdata.nodes"
_PASS_ERRORS_ON = ("_apply_udf", "_populate_queue", "pin_memory")
"""Its modules that put the errors of threads into words."""


def find(thing: Any) -> Attached | None:
    """Attach timers to a ``Loader`` or a node."""
    library = sys.modules.get(_LIBRARY)
    if library is None or not isinstance(thing, (library.Loader, library.BaseNode)):
        return None
    for name in _PASS_ERRORS_ON:
        module = sys.modules.get(f"{_LIBRARY}.{name}")
        if module is not None:
            hide_our_frames(vars(module))
    root = thing.root if isinstance(thing, library.Loader) else thing
    return attach(_LIBRARY, lambda timers: _Walk(library, timers).visit(root, TRAINING_LOOP))


class _Walk:
    """Visits the nodes from the batch to the sources, and attaches a timer to each."""

    def __init__(self, library: Any, timers: Timers) -> None:
        self._library, self._timers = library, timers
        self._visited: set[int] = set()

    def visit(self, node: Any, pool: str) -> None:
        """Visit ``node``, which the thread ``pool`` asks for items, and those before it."""
        if id(node) in self._visited:
            return
        self._visited.add(id(node))
        library = self._library
        if isinstance(node, library.ParallelMapper):
            self._visit_mapper(node, pool)
        elif isinstance(node, (library.Prefetcher, library.PinMemory)):
            self.visit(node.source, f"thread of {type(node).__name__}")
        elif sources := list(self._sources(node)):
            for source in sources:
                self.visit(source, pool)
        else:
            self._time(node, "next", _source_name(node), "source", 1, pool)

    def _visit_mapper(self, node: Any, pool: str) -> None:
        mapper = node._it if node.prebatch is None else node._it.source
        function = node.map_fn if node.prebatch is None else node.map_fn.map_fn
        name, workers = function_name(function), node.num_workers
        if not workers:
            self._time(mapper, "map_fn", name, "Mapper", 1, pool)
        elif node.method == "thread":
            most = node.max_concurrent or workers
            self._time(mapper, "map_fn", name, "ParallelMapper", min(workers, most), "")
        else:
            self._timers.note(
                f"The ParallelMapper of {name} works in processes (method='process'), which cannot "
                "be timed from here."
            )
        self.visit(mapper.source, f"reading thread of {name}" if workers else pool)

    def _sources(self, node: Any) -> Iterator[Any]:
        """Yield the nodes that a node holds, whatever it calls them."""
        for value in vars(node).values():
            for each in value.values() if isinstance(value, dict) else (value,):
                if isinstance(each, self._library.BaseNode):
                    yield each

    def _time(
        self, holder: Any, attribute: str, name: str, kind: str, concurrency: int, pool: str
    ) -> None:
        timer, function = CallTimer(), getattr(holder, attribute)
        self._timers.replace(holder, attribute, TimedCall(function, timer))
        size = 1 if pool else None
        self._timers.add(StageMeter(name, kind, timer.read, concurrency, pool, size))


def _source_name(node: Any) -> str:
    """Return the names of a source and of what it reads."""
    attributes = vars(node)
    data = attributes.get("iterable", attributes.get("sampler"))
    kind = type(node).__name__
    return kind if data is None else f"{kind}({type(data).__name__})"
