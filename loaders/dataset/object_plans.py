"""Plan the objects of a data set: their columns, which must be the same, and their splits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, TypeVar

import pyarrow as pa

from pipeprof.errors import FormatError, SchemaMismatch
from pipeprof.formats.base import Decoder, Fault, FilePlan, ReadOptions, drive_plan
from pipeprof.formats.types import has_tensor, no_tensor
from pipeprof.loaders.bad_data import SkipCounter
from pipeprof.storage import ObjectInfo, Store

_AT_ONCE = 32
"""Most objects that are planned at the same time, as planning mostly waits for answers."""

T = TypeVar("T")
S = TypeVar("S")
Form: TypeAlias = Literal["tensor", "table", "any"]
"""Which columns are wanted: those that have a tensor form, those that every format can store
(`formats.types`), or all."""
Types: TypeAlias = "Mapping[str, pa.DataType]"
Planned: TypeAlias = "tuple[ObjectInfo, FilePlan]"


@dataclass(frozen=True)
class ObjectPlanner:
    """Plans the objects of one data set."""

    decoder: Decoder
    store: Store
    options: ReadOptions
    skips: SkipCounter

    def plan_all(
        self, items: Sequence[ObjectInfo], columns: Sequence[str] | None, types: Types, form: Form,
        optional: bool,
    ) -> tuple[pa.Schema | None, list[Planned]]:  # fmt: skip
        """Return the schema of the first object that has one, and the plan of each object. All
        objects must have that schema's columns, in any order, with the same types; where columns
        are ``optional``, they are read as these types, and may be absent. Raises `FormatError` when
        no object can be read."""
        schema: pa.Schema | None = None
        plans: list[Planned] = []
        first, errors = items[0], list[FormatError]()
        remaining = iter(items)
        for item in remaining:
            try:
                plan, types = self._plan_first(item, columns, types, form)
            except FormatError as error:
                errors.append(self._skip(item, error))
                continue
            plans.append((item, plan))
            if plan.schema is not None:
                first, schema = item, plan.schema
                break
        if schema is not None and optional:
            types = {field.name: field.type for field in schema}
        names = schema.names if schema is not None else []
        for item, outcome in self._plan_alike(list(remaining), names, types):
            if isinstance(outcome, FilePlan) and outcome.schema not in (None, schema):
                outcome = SchemaMismatch(
                    f"{item.url} has other types than {first.url}: "
                    f"{_difference(outcome.schema, schema)}. Read them apart, or give types=…"
                )
            if isinstance(outcome, FormatError):
                errors.append(self._skip(item, outcome))
            else:
                plans.append((item, outcome))
        if errors and not plans:
            raise errors[0]
        for item, plan in plans:
            for fault in plan.faults:
                self.skips.skip_rows(item.url, explain(fault.error, item), fault.rows)
        return schema, plans

    def _skip(self, item: ObjectInfo, error: FormatError) -> FormatError:
        """Count an object that cannot be read, and return the error. Raises it where nothing is
        skipped."""
        self.skips.skip_object(item.url, error)
        return error

    def _plan_first(
        self, item: ObjectInfo, columns: Sequence[str] | None, types: Types, form: Form
    ) -> tuple[FilePlan, Types]:
        """Plan the object that decides which columns all others have, and with which ``types``.
        Raises `SchemaMismatch` where no column has ``form``, or one of ``columns`` has not."""
        if form == "any":
            every = self._plan(item, None, types)
            types = {**{each.name: each.type for each in every.left_out}, **types}
            same = columns is None and not every.left_out
            return every if same else self._plan(item, columns, types), types
        plan = self._plan(item, columns, types)
        fields = tuple(plan.schema or ())
        kept = [each.name for each in fields if form == "table" or has_tensor(each.type)]
        others = tuple(each for each in fields if each.name not in kept)
        left_out = (*plan.left_out, *others)
        if (others and columns is not None) or (left_out and not kept):
            raise explain(no_tensor((others or left_out)[0], kept), item)
        if others:
            plan = self._plan(item, kept, types)
        return replace(plan, left_out=left_out), types

    def _plan_alike(
        self, items: Sequence[ObjectInfo], names: Sequence[str], types: Types
    ) -> Iterator[tuple[ObjectInfo, FilePlan | FormatError]]:
        """Plan objects with the columns ``names``, or return why one cannot be read."""

        def plan(item: ObjectInfo) -> FilePlan | FormatError:
            try:
                return self._plan(item, names, types)
            except FormatError as error:
                return error

        return zip(items, several(self.store, plan, items), strict=True)

    def _plan(self, item: ObjectInfo, columns: Sequence[str] | None, types: Types) -> FilePlan:
        faults: list[Fault] = []

        def on_fault(fault: Fault) -> None:
            if not self.skips.enabled:
                raise fault.error
            faults.append(fault)

        try:
            plan = drive_plan(
                self.decoder.plan(item.size, columns, types, self.options),
                lambda offset, length: self.store.read(item, [(offset, length)])[0],
                on_fault,
            )
        except FormatError as error:
            raise explain(error, item) from None
        return replace(plan, faults=tuple(faults))


def several(store: Store, work: Callable[[S], T], items: Sequence[S]) -> Iterator[T]:
    """Call ``work``, which reads ``store``, with each of ``items``. Return the results in their
    order.

    Several calls run at the same time, where the store answers several. After an error that is
    raised, or when the caller wants no more, no other call begins.
    """
    if store.one_at_a_time or len(items) < 2:
        yield from map(work, items)
        return
    threads = ThreadPoolExecutor(min(_AT_ONCE, len(items)), "pipeprof-plan")
    try:
        yield from threads.map(work, items)
    finally:
        threads.shutdown(cancel_futures=True)


def explain(error: FormatError, item: ObjectInfo) -> FormatError:
    """Return ``error`` with the URL of the object, which the format does not know."""
    return type(error)(f"{item.url}: {error}")


def _difference(one: pa.Schema, other: pa.Schema) -> str:
    """Describe the first column whose type differs; both schemas have the same names."""
    name = next(name for name in one.names if one.field(name).type != other.field(name).type)
    return f"{name!r} is {one.field(name).type}, not {other.field(name).type}"
