"""Machine instructions that numba has no name for. For kernels only: nobody checks an index.

Bytes are looked at 64 or 32 at once: an answer is a number with a bit for each, the first's the
lowest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import extending, types
from numba.core import cgutils
from numba.np import arrayobj

intrinsic: Callable[[Callable[..., Any]], Any] = extending.intrinsic
_BYTE, _WORD, _LONG = ir.IntType(8), ir.IntType(64), ir.IntType(128)
Compare = Callable[[Any, Any, Callable[[int], Any]], Any]
"""By a builder: the bytes, and whatever fills as many with one."""


@intrinsic
def pointer(_: Any, array: Any) -> Any:
    """Where an argument of the kernel begins. Numba counts who holds an array, with each call of a
    part of a kernel that takes one; a pointer is free."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.make_array(signature.args[0])(context, builder, arguments[0]).data

    return types.CPointer(array.dtype)(array), generate


def _at_address(kind: Any) -> Any:
    array, size = types.Array(kind, 1, "C"), kind.bitwidth // 8

    @intrinsic
    def instruction(_: Any, address: Any, length: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            address, length = arguments
            found, step = arrayobj.make_array(array)(context, builder), ir.Constant(_WORD, size)
            arrayobj.populate_array(
                found,
                data=builder.inttoptr(address, found.data.type),
                shape=[length],
                strides=[step],
                itemsize=step,
                meminfo=None,
            )
            return found._getvalue()

        return array(types.intp, types.intp), generate

    return instruction


bytes_at, ints_at = _at_address(types.uint8), _at_address(types.int32)
"""``f(address, length)``: the array that lies there, held by somebody else."""


@intrinsic
def get(_: Any, start: Any, at: Any) -> Any:
    """``start[at]``"""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(builder.gep(arguments[0], [arguments[1]]))

    return start.dtype(start, types.intp), generate


@intrinsic
def put_value(_: Any, start: Any, at: Any, value: Any) -> Any:
    """``start[at] = value``"""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        start, at, value = arguments
        builder.store(value, builder.gep(start, [at]))
        return context.get_dummy_value()

    return types.void(start, types.intp, start.dtype), generate


def _place(builder: Any, start: Any, at: Any, kind: Any) -> Any:
    return builder.bitcast(builder.gep(start, [at]), kind.as_pointer())


def _compared(width: int, compare: Compare) -> Any:
    """An instruction on ``(start, at)`` that compares each of so many bytes."""
    vector = ir.VectorType(_BYTE, width)

    def filled(byte: int) -> Any:
        return ir.Constant(vector, [byte] * width)

    @intrinsic
    def instruction(_: Any, start: Any, at: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            start, at = arguments
            place = _place(builder, start, at, vector)
            bits = compare(builder, builder.load(place, align=1), filled)
            number = builder.bitcast(bits, ir.IntType(width))
            return number if width == 64 else builder.zext(number, _WORD)

        return types.uint64(start, types.intp), generate

    return instruction


def which_are(byte: int) -> Any:
    """``f(start, at)``: which of 64 bytes are this one."""
    return _compared(64, lambda build, some, all_: build.icmp_unsigned("==", some, all_(byte)))


which_are_beyond_ascii = _compared(
    64, lambda build, some, all_: build.icmp_unsigned(">=", some, all_(128))
)
which_are_digits = _compared(
    32, lambda build, some, all_: build.icmp_unsigned("<", build.sub(some, all_(48)), all_(10))
)
"""Of 32 bytes."""


@intrinsic
def load(_: Any, start: Any, at: Any) -> Any:
    """Eight bytes from ``start + at`` on, the first the lowest."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        start, at = arguments
        place = _place(builder, start, at, _WORD)
        return builder.load(place, align=1)

    return types.uint64(start, types.intp), generate


@intrinsic
def store(_: Any, start: Any, at: Any, word: Any) -> Any:
    """Eight bytes to ``start + at``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        start, at, word = arguments
        place = _place(builder, start, at, _WORD)
        builder.store(word, place, align=1)
        return context.get_dummy_value()

    return types.void(start, types.intp, types.uint64), generate


@intrinsic
def move(_: Any, source: Any, at: Any, length: Any, target: Any, to: Any) -> Any:
    """So many bytes from ``source + at`` to ``target + to``; the two share none."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source, at, length, target, to = arguments
        begin, end = builder.gep(source, [at]), builder.gep(target, [to])
        cgutils.raw_memcpy(builder, end, begin, length, 1)
        return context.get_dummy_value()

    return types.void(source, types.intp, types.intp, target, types.intp), generate


@intrinsic
def apart(_: Any, start: Any, other: Any) -> Any:
    """What is ``other`` by an index from ``start``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        first, second = (builder.ptrtoint(each, _WORD) for each in arguments)
        return builder.sub(second, first)

    return types.intp(start, other), generate


@intrinsic
def high(_: Any, a: Any, b: Any) -> Any:
    """The upper 64 bits of ``a * b``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        a, b = (builder.zext(each, _LONG) for each in arguments)
        return builder.trunc(builder.lshr(builder.mul(a, b), ir.Constant(_LONG, 64)), _WORD)

    return types.uint64(types.uint64, types.uint64), generate


def _counted(count: Callable[[Any, Any], Any]) -> Any:
    @intrinsic
    def instruction(_: Any, word: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return count(builder, *arguments)

        return types.intp(types.uint64), generate

    return instruction


_NOT_ZERO = ir.Constant(ir.IntType(1), 1)
first_one = _counted(lambda builder, word: builder.cttz(word, _NOT_ZERO))
"""The place of the lowest bit of a number that is not 0."""
zeros_before = _counted(lambda builder, word: builder.ctlz(word, _NOT_ZERO))
"""Of a number that is not 0."""
ones = _counted(lambda builder, word: builder.ctpop(word))
"""How many bits are set."""


@intrinsic
def as_double(_: Any, bits: Any) -> Any:
    """The float64 of these bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.uint64), generate
