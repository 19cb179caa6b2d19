"""Foreign classes are patched where their work is done, and look as before."""

import inspect

from pipeprof.loaders.instrument.monkeypatch import observe_creation, wrap_method


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
        wrap_method(cls, "work", around, key="test")
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
    observe_creation(Base, noted.append, key="test")
    base, mixed = Base(2, deep=True), Mixed(3)
    assert noted == [base, mixed]
    assert (base.size, mixed.mixed) == (2, 3)
    assert inspect.signature(Base) == signature
    assert str(inspect.signature(Mixed)) == "(size)"
