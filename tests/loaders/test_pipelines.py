"""The stages of torchdata.nodes are timed with its real package, and nothing else changes."""

from __future__ import annotations

import importlib
import importlib.util
import pickle
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from threading import Thread
from time import sleep
from typing import Any

import pytest
from torch.utils.data import DataLoader

import pipeprof
from pipeprof.loaders.pipelines.contents import contents_of
from pipeprof.loaders.pipelines.meters import function_name
from pipeprof.measure.call_timer import CallTimer, TimedCall, replace_attribute
from pipeprof.measure.clock import FakeClock
from pipeprof.model import PipelineStage, Profile
from tests.support.requirements import missing

ITEMS, BATCH = 40, 4


@pytest.fixture(scope="module")
def nodes() -> Any:
    if importlib.util.find_spec("torchdata") is None:
        missing("torchdata, whose nodes are to be measured, is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module("torchdata.nodes")


def double(item: int) -> int:
    return 2 * item


def nap(item: int) -> int:
    sleep(0.002)
    return item


def broken(item: int) -> int:
    if item == 7:
        raise ValueError(f"no item {item}")
    return item


def loader_of(nodes: Any, function: Any = double, **options: Any) -> Any:
    settings = {"num_workers": 2, "method": "thread"} | options
    mapped = nodes.ParallelMapper(nodes.IterableWrapper(range(ITEMS)), function, **settings)
    return nodes.Loader(nodes.Prefetcher(nodes.Batcher(mapped, BATCH), 2))


def stage(profile: Profile, name: str) -> PipelineStage:
    (found,) = [each for each in profile.pipeline if each.name == name]
    return found


def test_each_stage_counts_its_items_and_its_threads(nodes: Any) -> None:
    loader = pipeprof.wrap(loader_of(nodes, nap))
    for _ in range(2):
        assert len(list(loader)) == ITEMS // BATCH
    profile = loader.profile()
    source, mapper = profile.pipeline
    assert (source.name, source.kind, source.items) == ("IterableWrapper(range)", "source", 80)
    assert (mapper.name, mapper.kind, mapper.items) == ("nap", "ParallelMapper", 2 * ITEMS)
    assert (mapper.concurrency, mapper.pool, mapper.library) == (2, "", "torchdata.nodes")
    assert mapper.busy_s is not None
    assert 2 * ITEMS * 0.002 <= mapper.busy_s <= 2 * mapper.elapsed_s
    assert mapper.cpu_s is not None
    assert mapper.cpu_s < mapper.busy_s


def test_what_a_loader_yields_and_its_state_are_the_same(nodes: Any) -> None:
    def run(wrapped: bool) -> list[Any]:
        loader = loader_of(nodes, snapshot_frequency=2)
        loader = pipeprof.wrap(loader) if wrapped else loader
        first, state = [], {}
        for number, batch in enumerate(loader):
            first.append(batch)
            if number == 3:
                state = loader.state_dict()
                break
        loader.load_state_dict(pickle.loads(pickle.dumps(state)))
        return [first, state, list(loader)]

    assert run(wrapped=True) == run(wrapped=False)


def test_an_error_has_the_very_text_that_it_has_without_us(nodes: Any) -> None:
    def message(wrapped: bool) -> tuple[type, str]:
        loader = loader_of(nodes, broken)
        with pytest.raises(ValueError, match="no item 7") as caught:
            list(pipeprof.wrap(loader) if wrapped else loader)
        return type(caught.value), str(caught.value)

    assert message(wrapped=True) == message(wrapped=False)
    assert "pipeprof" not in message(wrapped=True)[1]


def test_the_timers_are_gone_after_a_pass(nodes: Any) -> None:
    loader = loader_of(nodes)
    mapper = loader.root.source.source
    profiled = pipeprof.wrap(loader)
    batches = iter(profiled)
    next(batches)
    assert isinstance(mapper._it.map_fn, TimedCall)
    assert pickle.loads(pickle.dumps(mapper._it.map_fn)) is double
    del batches
    assert mapper._it.map_fn is double
    assert "next" not in vars(mapper.source)


def test_a_mapper_of_processes_is_named_as_not_timed(nodes: Any) -> None:
    loader = pipeprof.wrap(loader_of(nodes, method="process", num_workers=1))
    assert len(list(loader)) == ITEMS // BATCH
    profile = loader.profile()
    assert [each.kind for each in profile.pipeline] == ["source"]
    assert any("double works in processes" in note for note in profile.notes)


def test_a_mapper_without_workers_is_part_of_the_thread_that_asks(nodes: Any) -> None:
    mapped = nodes.Mapper(nodes.IterableWrapper(range(ITEMS)), double)
    loader = pipeprof.wrap(nodes.Loader(nodes.Batcher(mapped, BATCH)))
    list(loader)
    mapper = stage(loader.profile(), "double")
    assert (mapper.kind, mapper.concurrency, mapper.pool) == ("Mapper", 1, "training loop")
    assert mapper.items == ITEMS


def test_stages_of_one_name_are_numbered(nodes: Any) -> None:
    first = nodes.ParallelMapper(nodes.IterableWrapper(range(9)), double, 1, method="thread")
    second = nodes.ParallelMapper(first, double, 1, method="thread")
    loader = pipeprof.wrap(nodes.Loader(second))
    assert list(loader) == [4 * item for item in range(9)]
    assert [each.name for each in loader.profile().pipeline[1:]] == ["double", "double #2"]


def test_a_loader_is_found_in_what_user_code_puts_around_it(nodes: Any) -> None:
    class Around:
        def __init__(self, loader: Any) -> None:
            self.loader = loader

        def __iter__(self) -> Iterator[Any]:
            yield from self.loader

    def generator(loader: Any) -> Iterator[Any]:
        yield from loader

    for each in (Around, generator):
        loader = pipeprof.wrap(each(loader_of(nodes)))
        list(loader)
        assert stage(loader.profile(), "double").kind == "ParallelMapper"


def test_an_unknown_version_costs_the_stages_and_nothing_else(nodes: Any) -> None:
    inner = nodes.ParallelMapper(nodes.IterableWrapper(range(9)), nap, 1, method="thread")
    outer = nodes.ParallelMapper(inner, double, 1, method="thread")
    del inner.prebatch  # an attribute that we read, and that torchdata reads only once
    loader = pipeprof.wrap(nodes.Loader(outer))
    assert list(loader) == [2 * item for item in range(9)]
    profile = loader.profile()
    assert profile.pipeline == ()
    assert any("could not be timed" in note for note in profile.notes)
    assert outer._it.map_fn is double, "no timer is left behind"


def test_a_stage_that_ran_before_its_timer_was_set_is_unknown_and_not_zero(nodes: Any) -> None:
    bare = loader_of(nodes)
    bare.state_dict()  # starts the threads
    loader = pipeprof.wrap(bare)
    assert len(list(loader)) == ITEMS // BATCH
    profile = loader.profile()
    assert "double" not in [each.name for each in profile.pipeline]
    assert any("double ran before it could be timed" in note for note in profile.notes)
    list(loader)
    assert stage(loader.profile(), "double").items == ITEMS, "those of the second pass"


def test_large_data_is_not_looked_through() -> None:
    class Holder:
        def __init__(self) -> None:
            self.lists = [
                [[[number] for number in range(64)] for _ in range(64)] for _ in range(64)
            ]

    assert sum(1 for _ in contents_of(Holder())) <= 4096


def test_calls_are_counted_and_timed_by_the_clock() -> None:
    clock = FakeClock()
    timer = CallTimer(clock)

    def work(item: int) -> int:
        clock.sleep(0.003)
        clock.compute(0.001)
        return item

    assert [TimedCall(work, timer)(item) for item in range(5)] == list(range(5))
    reading = timer.read()
    assert reading.items == 5
    assert reading.busy_s == pytest.approx(0.020)
    assert reading.cpu_s == pytest.approx(0.005)


def test_short_calls_are_timed_now_and_then_and_scaled() -> None:
    clock = FakeClock()
    timer = CallTimer(clock)
    timed = TimedCall(lambda: clock.compute(10e-6), timer)
    for _ in range(10_000):
        timed()
    reading = timer.read()
    assert reading.items == 10_000
    assert reading.busy_s == pytest.approx(0.1)
    (sums,) = timer._sums.values()
    assert sums[2] < 700, "so few were timed"


def test_a_call_that_raises_is_time_but_no_item() -> None:
    clock = FakeClock()
    timer = CallTimer(clock)

    def fail() -> None:
        clock.sleep(0.5)
        raise StopIteration

    with pytest.raises(StopIteration):
        TimedCall(fail, timer)()
    assert (timer.read().items, timer.read().busy_s) == (0, 0.5)


def test_threads_do_not_lose_each_others_calls() -> None:
    timer = CallTimer()
    timed = TimedCall(double, timer)
    threads = [Thread(target=lambda: [timed(each) for each in range(5_000)]) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert timer.read().items == 20_000


def test_sections_add_the_time_that_was_spent_before_them() -> None:
    clock = FakeClock()
    timer = CallTimer(clock)

    @contextmanager
    def inner() -> Iterator[str]:
        yield "inner"

    with timer.section(inner(), 3, 0.25) as entered:
        clock.sleep(0.5)
    assert entered == "inner"
    assert (timer.read().items, timer.read().busy_s) == (3, 0.75)


def test_an_attribute_that_somebody_else_set_meanwhile_stays() -> None:
    class Thing:
        value = 1

    thing = Thing()
    undo = replace_attribute(thing, "value", 2)
    thing.value = 3
    undo()
    assert thing.value == 3
    undo = replace_attribute(other := Thing(), "value", 2)
    undo()
    assert other.value == 1
    assert vars(other) == {}


def test_looking_into_objects_runs_none_of_their_code() -> None:
    class Trap:
        def __getattribute__(self, name: str) -> Any:
            raise AssertionError(name)

        def __bool__(self) -> bool:
            raise AssertionError

    class Holder:
        def __init__(self) -> None:
            self.held = [Trap()]

    holder = Holder()
    assert any(each is holder.held[0] for each in contents_of(holder))


def test_functions_have_the_names_that_users_know() -> None:
    assert function_name(partial(double, item=3)) == "double"
    assert function_name(sorted) == "sorted"
    assert function_name(Thread) == "Thread"


def test_a_data_loader_among_its_nodes_takes_no_stage_away(nodes: Any) -> None:
    wrapper = nodes.IterableWrapper(DataLoader(range(ITEMS)))
    loader = pipeprof.wrap(nodes.Loader(nodes.ParallelMapper(wrapper, double, num_workers=1)))
    assert len(list(loader)) == ITEMS
    profile = loader.profile()
    assert [stage.library for stage in profile.pipeline][:1] == ["torchdata.nodes"]
    assert not any("iterates a DataLoader" in note for note in profile.notes)
