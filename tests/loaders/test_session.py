"""The parts of `pipeprof run`: names, overrides, and what happens to classes that are not ours."""

import inspect
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch.utils.data import DataLoader, RandomSampler

import pipeprof
from pipeprof.errors import UsageError
from pipeprof.loaders.autopatch.call_sites import CallSites
from pipeprof.loaders.autopatch.monkeypatch import note_objects, put_around
from pipeprof.loaders.autopatch.overrides import Override, merged, override, parse_override
from pipeprof.loaders.autopatch.session import Session
from pipeprof.loaders.instrument.device_monitor import DeviceMonitor
from pipeprof.loaders.instrument.profiler import LoaderProfiler
from pipeprof.loaders.instrument.wrap import ProfiledLoader

HERE = Path(__file__)
DATA = torch.arange(40)


# -- names ---------------------------------------------------------------------------------------


class Maker:
    """Makes loaders, of which only the place is of interest."""

    def __init__(self, folder=HERE.parent):
        self.places = CallSites(str(folder))

    def make(self):
        return self.places.name(inspect.currentframe(), "DataLoader")


LINE = f"{HERE.name}:{inspect.getsourcelines(Maker.make)[1] + 1}"


def test_a_loader_is_named_by_the_line_that_makes_it():
    assert Maker().make() == LINE


def test_the_name_of_a_file_is_from_the_scripts_folder():
    assert Maker(HERE.parent.parent).make() == f"loaders/{LINE}"
    assert Maker("/elsewhere").make() == LINE


def test_one_that_is_made_after_its_predecessor_was_iterated_has_its_name():
    maker = Maker()
    for _ in range(3):
        name = maker.make()
        maker.places.iterated(name)
        assert name == LINE


def test_those_that_are_made_together_differ_also_when_all_are_rebuilt():
    maker = Maker()
    for _ in range(2):
        names = [maker.make() for _ in range(3)]
        assert names == [LINE, f"{LINE} #2", f"{LINE} #3"]
        for name in reversed(names):
            maker.places.iterated(name)


def test_those_that_a_helper_makes_for_different_callers_differ():
    maker = Maker()
    for _ in range(2):
        train = maker.make()
        maker.places.iterated(train)
        test = maker.make()
        maker.places.iterated(test)
        assert (train, test) == (LINE, f"{LINE} #2")


def test_a_loader_that_no_line_of_the_users_led_to():
    assert CallSites("/elsewhere").name(None, "DataLoader") == "DataLoader"


# -- overrides -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "place", "arguments"),
    [
        ("num_workers=8", None, {"num_workers": 8}),
        (" num_workers = 0 , timeout=1.5", None, {"num_workers": 0, "timeout": 1.5}),
        ("train.py:42:batch_size=64", "train.py:42", {"batch_size": 64}),
        ("train.py:42 #2:in_order=no", "train.py:42 #2", {"in_order": False}),
        ("a b/data.py:pin_memory=True", "a b/data.py", {"pin_memory": True}),
        ("multiprocessing_context=spawn", None, {"multiprocessing_context": "spawn"}),
        ("persistent_workers=1,prefetch_factor=4", None,
         {"persistent_workers": True, "prefetch_factor": 4}),
    ],
)  # fmt: skip
def test_what_may_be_set(text, place, arguments):
    assert parse_override(text) == Override(text, place, arguments)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "'' sets nothing"),
        ("num_workers", "sets nothing; write it like num_workers=8,prefetch_factor=4"),
        ("num_workers=8,", "sets nothing"),
        ("train.py:42", "sets nothing"),
        ("shuffle=true", "'shuffle' cannot be set; what can: num_workers"),
        ("num_workers=-1", "num_workers=-1 is not a whole number of 0 or more"),
        ("num_workers=2.5", "is not a whole number"),
        ("prefetch_factor=0", "prefetch_factor=0 is not a whole number of 1 or more"),
        ("batch_size=", "batch_size= is not a whole number"),
        ("pin_memory=maybe", "pin_memory=maybe is neither true nor false"),
        ("timeout=inf", "timeout=inf is not a number of seconds"),
        ("multiprocessing_context=thread", "is none of fork, forkserver, spawn"),
        ("num_workers=1,num_workers=2", "sets num_workers twice"),
    ],
)
def test_what_may_not_be_set(text, says):
    with pytest.raises(UsageError) as raised:
        parse_override(text)
    assert says in str(raised.value)


def test_what_is_for_one_loader_counts_before_what_is_for_a_file_or_for_all():
    each = [
        parse_override("train.py:42:num_workers=3"),
        parse_override("train.py:num_workers=2,timeout=2"),
        parse_override("num_workers=1,pin_memory=true"),
    ]
    assert merged(each, "train.py:42") == {"num_workers": 3, "timeout": 2, "pin_memory": True}
    assert merged(each, "train.py:42 #2") == {"num_workers": 2, "timeout": 2, "pin_memory": True}
    assert merged(each, "data.py:42") == {"num_workers": 1, "pin_memory": True}


PLAIN = {
    name: parameter.default
    for name, parameter in inspect.signature(DataLoader).parameters.items()
    if name != "dataset"
}


@pytest.mark.parametrize(
    ("given", "wanted", "changes", "notes"),
    [
        ({}, {"num_workers": 2}, {"num_workers": 2}, ["--set replaced num_workers 0 → 2"]),
        ({"num_workers": 2}, {"num_workers": 2}, {}, []),
        ({}, {"num_workers": 2, "prefetch_factor": 4}, {"num_workers": 2, "prefetch_factor": 4},
         ["--set replaced num_workers 0 → 2, prefetch_factor None → 4"]),
        ({}, {"prefetch_factor": 4}, {}, ["--set prefetch_factor was left out: it needs workers"]),
        ({"num_workers": 2, "timeout": 5}, {"num_workers": 0, "persistent_workers": True},
         {"num_workers": 0, "timeout": 0},
         ["--set replaced num_workers 2 → 0, timeout 5 → 0",
          "--set persistent_workers was left out: it needs workers"]),
        ({"batch_sampler": [[1]]}, {"batch_size": 4}, {},
         ["--set batch_size=4 was left out: the script's batch_sampler makes the batches"]),
        ({"batch_size": None}, {"batch_size": 4}, {},
         ["--set batch_size=4 was left out: the script's data set makes the batches"]),
        ({"num_workers": 1, "multiprocessing_context": torch.multiprocessing.get_context("spawn")},
         {"multiprocessing_context": "fork"}, {"multiprocessing_context": "fork"},
         ["--set replaced multiprocessing_context spawn → fork"]),
        ({"num_workers": 1, "multiprocessing_context": torch.multiprocessing.get_context("spawn")},
         {"multiprocessing_context": "spawn"}, {}, []),
    ],
)  # fmt: skip
def test_as_much_is_replaced_as_torch_allows(given, wanted, changes, notes):
    found, said = override({**PLAIN, **given}, wanted)
    assert found == changes
    assert list(said) == notes
    DataLoader(DATA, **{**PLAIN, **given, **changes})


def test_an_argument_that_this_torch_does_not_know_is_left_out():
    changes, notes = override({"num_workers": 1}, {"in_order": False})
    assert changes == {}
    assert notes == ("--set in_order=False was left out: this DataLoader takes no such argument",)


# -- classes that are not ours -------------------------------------------------------------------


def test_the_method_in_which_the_work_is_done_is_found():
    class Base:
        def work(self):
            return ["base"]

    class Passing(Base):
        def work(self):
            return ["passing", *super().work()]

    class Apart(Base):
        def work(self):
            return ["apart"]

    def around(original):
        return lambda self: ["around", *original(self)]

    for cls in (Passing, Passing, Base, Apart, Apart):
        put_around(cls, "work", around)
    assert Passing().work() == ["passing", "around", "base"]
    assert Apart().work() == ["around", "apart"]


def test_every_object_is_noted_and_the_arguments_stay_visible():
    class Base:
        def __init__(self, size, *, deep=False):
            self.size = size

    class Mixin:
        def __new__(cls, size):
            made = super().__new__(cls)
            made.mixed = size
            return made

    class Mixed(Base, Mixin):
        def __init__(self, size):
            pass

    signature = inspect.signature(Base)
    noted = []
    note_objects(Base, noted.append)
    base, mixed = Base(2, deep=True), Mixed(3)
    assert noted == [base, mixed]
    assert (base.size, mixed.mixed) == (2, 3)
    assert inspect.signature(Base) == signature
    assert str(inspect.signature(Mixed)) == "(size)"


# -- the session ---------------------------------------------------------------------------------


@pytest.fixture
def loaders():
    """A DataLoader of this test's own, to be changed."""

    class Loader(DataLoader):
        __init__ = DataLoader.__init__
        __iter__ = DataLoader.__iter__

    return Loader


def begin(loader_class, *overrides, whole=False):
    places = CallSites(str(HERE.parent))
    session = Session(places, [parse_override(each) for each in overrides], whole=whole)
    session._hook_torch(SimpleNamespace(DataLoader=loader_class))
    return session


def counts(session):
    return [sum(epoch.batches for epoch in each.epochs) for each in session.profiles(0.05)]


def test_what_is_iterated_is_measured(loaders):
    session = begin(loaders)
    loader = loaders(DATA, 4)
    for _ in range(2):
        assert torch.equal(torch.cat(list(loader)), DATA)
    assert counts(session) == [20]
    assert session.problems == []


def test_a_wrapped_loader_is_measured_once(loaders, monkeypatch):
    monkeypatch.setattr(ProfiledLoader, "__iter__", ProfiledLoader.__iter__)
    session = begin(loaders)
    session._hook_wrap(SimpleNamespace(ProfiledLoader=ProfiledLoader))
    loader = pipeprof.wrap(loaders(DATA, 4, num_workers=1))
    assert torch.equal(torch.cat(list(loader)), DATA)
    assert counts(session) == [10]
    assert [each.name for each in session.profiles(0.05)] == ["loader"]
    assert loader.profile().lost_records == 0


def test_a_loader_inside_another_is_measured_too(loaders):
    session = begin(loaders)

    class Outer(loaders):
        def __iter__(self):
            return iter(self.inner)

    outer = Outer(DATA, 4)
    outer.inner = loaders(DATA, 8)
    assert len(list(outer)) == 5
    assert counts(session) == [5, 5]


def test_what_torch_raises_is_raised_with_overrides_too(loaders):
    session = begin(loaders, "num_workers=1")
    with pytest.raises(ValueError, match="batch_sampler option is mutually exclusive"):
        loaders(DATA, 4, batch_sampler=[[1]])
    with pytest.raises(TypeError, match="unexpected keyword argument 'workers'"):
        loaders(DATA, workers=3)
    with pytest.raises(ValueError, match="mutually exclusive with shuffle"):
        loaders(DATA, sampler=RandomSampler(DATA), shuffle=True)
    assert session.problems == []


def test_what_iterating_raises_is_raised(loaders):
    def fails(loader):
        raise ValueError("no such data")

    loaders.__iter__ = fails
    session = begin(loaders)
    with pytest.raises(ValueError, match="no such data"):
        iter(loaders(DATA))
    assert session.problems == []


def test_overrides_of_a_loader_that_is_not_iterated_are_told(loaders):
    session = begin(loaders, "num_workers=1", "other.py:num_workers=2")
    loaders(DATA, 4)
    unused, replaced = session.remarks()
    assert unused.startswith(
        "--set other.py:num_workers=2: no DataLoader was made there; they were"
    )
    assert replaced.endswith("--set replaced num_workers 0 → 1")


def test_a_loader_that_delivers_nothing_is_told(loaders):
    session = begin(loaders)
    assert list(loaders([], 4)) == []
    assert session.profiles(0.05) == []
    (problem,) = session.problems
    assert problem.endswith("was iterated, but delivered no batch")


def rebuilt(loaders, dataset=DATA, **options):
    """As a framework makes a loader anew: with those arguments that it knows."""
    session = begin(loaders)
    asked = loaders(DATA, 4, num_workers=1, in_order=False)
    list(loaders(dataset, asked.batch_size, num_workers=asked.num_workers, **options))
    return session, asked


def test_an_order_that_a_framework_loses_is_told(loaders):
    session, asked = rebuilt(loaders)
    (profile,) = session.profiles(0.05)
    (note,) = profile.notes
    assert note.startswith(f"in_order=False, as {session.made[0]} asks for it, was lost: ")
    list(asked)
    assert [each.notes for each in session.profiles(0.05)] == [(), ()], "it was not rebuilt"


@pytest.mark.parametrize("changes", [{"in_order": False}, {"dataset": DATA + 1}])
def test_no_order_is_lost_where_it_is_kept_or_the_data_are_others(changes, loaders):
    session, _ = rebuilt(loaders, **changes)
    (profile,) = session.profiles(0.05)
    assert profile.notes == ()


@pytest.mark.parametrize("whole", [True, False])
def test_of_a_fast_loader_all_batches_are_watched_when_told_so(whole, loaders, monkeypatch):
    # whatever other tests did in this process: with a device to look at all are watched
    monkeypatch.setattr(DeviceMonitor, "has_work", staticmethod(lambda: False))
    session, batches = begin(loaders, whole=whole), 1_000
    for count, _ in enumerate(loaders(range(10_000), None, num_workers=1), 1):
        if count == batches:
            break
    (profile,) = session.profiles(0.05)
    assert profile.measured_batches + profile.warmup_batches == batches
    assert (len(profile.batches.index) == batches) is whole
    assert (f"Of {batches:,} batches" in "".join(profile.notes)) is not whole


@pytest.mark.parametrize("where", ["before", "after"])
def test_a_failure_of_ours_costs_the_script_nothing(where, loaders, monkeypatch):
    iterate = LoaderProfiler.iterate

    def fails(self, loader, start):
        if where == "after":
            iterate(self, loader, start)
        raise RuntimeError("password=secret")

    monkeypatch.setattr(LoaderProfiler, "iterate", fails)
    session = begin(loaders)
    assert torch.equal(torch.cat(list(loaders(DATA, 4))), DATA)
    (problem,) = session.problems
    assert problem.endswith("was not measured (RuntimeError)")


def test_a_place_that_cannot_be_told_costs_the_script_nothing(loaders, monkeypatch):
    def fails(*_):
        raise RuntimeError

    session = begin(loaders, "num_workers=1")
    monkeypatch.setattr(CallSites, "name", fails)
    assert len(list(loaders(DATA, 4))) == 10
    assert session.problems == ["a Loader cannot be watched (RuntimeError)"]
    assert counts(session) == [10]
    monkeypatch.setattr(LoaderProfiler, "profile", fails)
    assert session.profiles(0.05) == []
    assert session.problems[1:] == ["Loader was measured, but not analysed (RuntimeError)"]


def test_a_forked_process_is_left_alone(loaders, monkeypatch):
    session = begin(loaders, "num_workers=1")
    monkeypatch.setattr(os, "getpid", lambda: -1)
    loader = loaders(DATA, 4)
    assert loader.num_workers == 0
    assert len(list(loader)) == 10
    assert session.profiles(0.05) == session.made == []
