"""Something is done to a module as soon as it is imported, and not before."""

import sys
from importlib.util import find_spec

from pipeprof.measure.import_hook import ImportHook, when_imported


def test_a_module_is_acted_on_when_it_is_imported_and_looks_as_ever(tmp_path, monkeypatch):
    (tmp_path / "awaited.py").write_text("made = 1")
    monkeypatch.syspath_prepend(str(tmp_path))
    seen = []
    finders = list(sys.meta_path)
    when_imported("awaited", lambda module: seen.append((module.made, module.__name__)))
    find_spec("awaited")
    assert seen == [], "to look for it is not to import it"
    import awaited

    assert seen == [(1, "awaited")]
    assert sys.meta_path == finders
    assert vars(awaited.__loader__).keys() == {"name", "path"}
    when_imported("awaited", seen.append)
    assert seen[1] is awaited, "at once"


def test_several_modules_are_awaited_by_one_finder(tmp_path, monkeypatch):
    for name in ("first_awaited", "second_awaited"):
        (tmp_path / f"{name}.py").write_text(f"made = {name!r}")
    monkeypatch.syspath_prepend(str(tmp_path))
    seen, finders = [], list(sys.meta_path)
    names = ["first_awaited", "second_awaited"]
    ImportHook(dict.fromkeys(names, lambda module: seen.append(module.__name__))).begin()
    assert len(sys.meta_path) == len(finders) + 1
    import second_awaited

    assert seen == ["second_awaited"]
    import first_awaited

    assert seen == ["second_awaited", "first_awaited"]
    assert sys.meta_path == finders
    assert second_awaited.made == "second_awaited" != first_awaited.made


def test_what_is_called_off_is_not_done(tmp_path, monkeypatch):
    (tmp_path / "unawaited.py").write_text("made = 1")
    monkeypatch.syspath_prepend(str(tmp_path))
    seen, finders = [], list(sys.meta_path)
    forget = when_imported("unawaited", seen.append)
    assert sys.meta_path != finders
    forget()
    forget()
    assert sys.meta_path == finders
    import unawaited

    assert unawaited.made == 1
    assert seen == []
