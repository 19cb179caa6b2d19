"""Find the objects of a data set that hold rows, among those that describe them."""

from __future__ import annotations

from collections.abc import Sequence

from pipeprof.errors import FormatError, NothingFound
from pipeprof.formats.lance import table
from pipeprof.storage import ObjectInfo, Store
from pipeprof.storage.urls import join


def data_objects(store: Store, url: str) -> list[ObjectInfo]:
    """List the objects of ``url`` that hold rows. Raises `StorageError`, and `FormatError` for a
    table that cannot be read file by file."""
    items = _without_index(store.find(url))
    return _of_table(store, url, items) if any(map(_is_of_table, items)) else items


def _without_index(items: Sequence[ObjectInfo]) -> list[ObjectInfo]:
    """Leave out the index of shards of MDS, each of which describes itself."""
    shards = any(".mds" in item.url.rpartition("/")[2] for item in items)
    return [item for item in items if not (shards and item.url.endswith("/index.json"))]


def _is_of_table(item: ObjectInfo) -> bool:
    """Return whether an object may be a file of a Lance table."""
    folder, _, name = item.path.rpartition("/")
    return name.endswith(".lance") and folder.rpartition("/")[2] == table.DATA


def _of_table(store: Store, url: str, items: Sequence[ObjectInfo]) -> list[ObjectInfo]:
    """Return the files of the newest version of a Lance table; ``items`` where it is none."""
    try:
        manifests = {_name(each): each for each in store.find(join(url, table.VERSIONS))}
    except NothingFound:
        return list(items)
    name = table.newest(list(manifests))
    if name is None:
        return list(items)
    manifest = manifests[name]
    try:
        names = table.data_files(bytes(store.read(manifest, [(0, manifest.size)])[0]))
    except FormatError as error:
        raise type(error)(f"{manifest.url}: {error}") from None
    found = {_name(item): item for item in items if _is_of_table(item)}
    lost = [each for each in names if each not in found]
    if lost:
        raise FormatError(f"{manifest.url} names {lost[0]}, which is not in {table.DATA}.")
    return [found[each] for each in names]


def _name(item: ObjectInfo) -> str:
    return item.path.rpartition("/")[2]
