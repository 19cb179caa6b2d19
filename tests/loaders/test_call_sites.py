"""The names that `pipeprof run` gives to the loaders of a script."""

import inspect
from pathlib import Path

from pipeprof.loaders.autopatch.call_sites import CallSites

HERE = Path(__file__)


class Maker:
    """Creates loaders, of which only the call site matters."""

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
