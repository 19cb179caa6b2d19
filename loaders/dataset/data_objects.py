"""Find the objects of a data set that hold rows, among those that describe them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pipeprof.errors import FormatError, NothingFound
from pipeprof.formats.base import FilePlan
from pipeprof.formats.lance.table import DATA, VERSIONS, LanceTable, newest, parse_manifest
from pipeprof.formats.webdataset.index import indexed_splits
from pipeprof.storage import ObjectInfo, Store
from pipeprof.storage.urls import join


@dataclass(frozen=True)
class DataObjects:
    """The objects of a data set that hold rows, and what describes them."""

    items: list[ObjectInfo]
    table: LanceTable | None = None
    """The Lance table of which they are the files."""
    indexes: Mapping[str, ObjectInfo] = field(default_factory=dict)
    """URL of a tar archive → its index."""


def data_objects(store: Store, url: str) -> DataObjects:
    """List the objects of ``url`` that hold rows. Raises `StorageError`, and `FormatError` for a
    table that cannot be read file by file."""
    items = store.find(url)
    manifest = _newest_manifest(store, url) if any(map(_is_of_table, items)) else None
    if manifest is None:
        indexes = _indexes(items)
        described = {*indexes.values(), *_shard_index(items)}
        return DataObjects([each for each in items if each not in described], indexes=indexes)
    try:
        table = parse_manifest(bytes(store.read(manifest, [(0, manifest.size)])[0]))
    except FormatError as error:
        raise type(error)(f"{manifest.url}: {error}") from None
    found = {_name(item): item for item in items if _is_of_table(item)}
    lost = [each for each in table.files if each not in found]
    if lost:
        raise FormatError(f"{manifest.url} names {lost[0]}, which is not in its folder {DATA}.")
    return DataObjects([found[each] for each in table.files], table)


def with_index(
    store: Store, item: ObjectInfo, plan: FilePlan, index: ObjectInfo, split_bytes: int
) -> FilePlan:
    """Return the plan of a tar archive with the splits of its index. Raises `FormatError`."""
    data = bytes(store.read(index, [(0, index.size)])[0])
    try:
        splits = indexed_splits(data, item.size, split_bytes)
    except FormatError as error:
        raise type(error)(f"{index.url}: {error} Write it again, or remove it.") from None
    return replace(plan, splits=splits)


def _indexes(items: Sequence[ObjectInfo]) -> dict[str, ObjectInfo]:
    """Return the index of each tar archive, as ``wds2idx`` names it."""
    found = {item.url: item for item in items if item.url.endswith(".idx")}
    named = {item.url: found.get(_stem(item.url) + ".idx") for item in items
             if item.url.endswith(".tar")}  # fmt: skip
    return {url: index for url, index in named.items() if index is not None}


def _stem(url: str) -> str:
    """Return a URL up to the first dot in its file name."""
    folder, slash, name = url.rpartition("/")
    return folder + slash + name[: name.index(".", 1)]


def _shard_index(items: Sequence[ObjectInfo]) -> list[ObjectInfo]:
    """Return the index of shards of MDS, each of which describes itself."""
    shards = any(".mds" in _name(item) for item in items)
    return [item for item in items if shards and _name(item) == "index.json"]


def _is_of_table(item: ObjectInfo) -> bool:
    """Return whether an object may be a file of a Lance table."""
    folder, _, name = item.path.rpartition("/")
    return name.endswith(".lance") and folder.rpartition("/")[2] == DATA


def _newest_manifest(store: Store, url: str) -> ObjectInfo | None:
    """Return the manifest of the newest version of a Lance table; ``None`` where it is none."""
    try:
        manifests = {_name(each): each for each in store.find(join(url, VERSIONS))}
    except NothingFound:
        return None
    name = newest(list(manifests))
    return manifests[name] if name is not None else None


def _name(item: ObjectInfo) -> str:
    return item.path.rpartition("/")[2]
