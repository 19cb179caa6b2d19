"""Kernels: digits → numbers, as Arrow reads them, or a word that somebody else must.

Eight digits are one number of 64 bits: three multiplications make their value. A decimal is digits
times a power of ten. Both are exact in float64 up to 2⁵³ and 10²², so that one division or
multiplication rounds rightly; beyond, the digits are multiplied with 128 bits of the power of five,
as D. Lemire shows in "Number Parsing at a Gigabyte per Second" (2021).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pipeprof.formats.compiled import kernel
from pipeprof.formats.vectors import (
    as_double,
    first_one,
    get,
    high,
    load,
    which_are_digits,
    zeros_before,
)

ROOM = 32
"""Bytes that are read at once: fields that are nearer to the end than that are read one by one."""
_BEFORE = 24
"""As many digits are read at once, backwards from a field's end."""
_EXACT = np.uint64(2**53)
_POWERS_EXACT = 22
_U0, _U1, _U3 = np.uint64(0), np.uint64(1), np.uint64(3)
_MOST_DIGITS = 19
"""That always fit 64 bits."""
_SMALLEST, _LARGEST = -342, 308
"""Powers of ten beyond make 0 or infinity of any digits."""
_MINUS, _POINT, _ZERO = 45, 46, 48
_E, _CAPITAL_E, _PLUS = 101, 69, 43


def _five_to_the(power: int) -> int:
    """Its first 128 bits, as one number; rounded up where that is a fraction of few bits."""
    whole: int = 5 ** abs(power)
    size = whole.bit_length()
    if power >= 0:
        return whole << (128 - size) if size <= 128 else whole >> (size - 128)
    if power >= -27:
        return (1 << (size + 127)) // whole + 1
    fraction = (1 << (2 * size + 128)) // whole + 1
    return fraction >> (fraction.bit_length() - 128)


_FIVES = [_five_to_the(power) for power in range(_SMALLEST, _LARGEST + 1)]
_UPPER = np.array([five >> 64 for five in _FIVES], np.uint64)
_LOWER = np.array([five & (2**64 - 1) for five in _FIVES], np.uint64)
_TENS = np.array([10**power for power in range(20)], np.uint64)
_EXACT_TENS = np.array([10.0**power for power in range(_POWERS_EXACT + 1)])
_LAST = np.array([(2**64 - 1) << (8 * (8 - count)) & (2**64 - 1) for count in range(9)], np.uint64)
"""By a number: so many of eight bytes, the last."""
_NIBBLES = np.uint64(0x0F0F0F0F0F0F0F0F)
_FIRST_OF_FOUR = np.uint64(0x000000FF000000FF)
_BY_100, _BY_10000 = np.uint64(100 + (1000000 << 32)), np.uint64(1 + (10000 << 32))
_TEN, _8, _16, _32 = np.uint64(10), np.uint64(8), np.uint64(16), np.uint64(32)


@kernel()
def _up_to_8(data: Any, end: Any, count: Any) -> Any:
    """The value of the ``count`` digits before ``end``."""
    word = load(data, end - 8) & _NIBBLES & _LAST[count]
    word = word * _TEN + (word >> _8)
    return ((word & _FIRST_OF_FOUR) * _BY_100 + ((word >> _16) & _FIRST_OF_FOUR) * _BY_10000) >> _32


@kernel()
def _up_to_16(data: Any, end: Any, count: Any) -> Any:
    late = min(count, 8)
    return _up_to_8(data, end, late) + _up_to_8(data, end - 8, count - late) * _TENS[8]


@kernel()
def _up_to_19(data: Any, end: Any, count: Any) -> Any:
    value = _up_to_16(data, end, min(count, 16))
    if count > 16:
        value += _up_to_8(data, end - 16, count - 16) * _TENS[16]
    return value


@kernel()
def read_digits(data: Any, size: Any, start: Any, end: Any) -> Any:
    """``(whether it is one, value)`` of up to 19 digits and nothing else."""
    count = end - start
    if start >= _BEFORE and start + ROOM <= size and 0 < count <= _MOST_DIGITS:
        if ~which_are_digits(data, start) & ((_U1 << np.uint64(count)) - _U1):
            return False, _U0
        return True, _up_to_19(data, end, count)
    fine, value, _, pointed = _one_by_one(data, start, end)
    return fine and not pointed, value


@kernel()
def read_decimal(data: Any, size: Any, start: Any, end: Any) -> Any:
    """``(whether it is one, value)`` of a decimal without a sign."""
    count = end - start
    if start >= _BEFORE and start + ROOM <= size and 0 < count <= _MOST_DIGITS + 1:
        others = ~which_are_digits(data, start) & ((_U1 << np.uint64(count)) - _U1)
        if not others and count <= _MOST_DIGITS:
            return _scaled(_up_to_19(data, end, count), 0)
        if others and not others & (others - _U1):
            before = first_one(others)
            after = count - before - 1
            if get(data, start + before) == _POINT and before <= 8 and count > 1:
                digits = _up_to_8(data, start + before, before) * _TENS[after]
                return _scaled(digits + _up_to_19(data, end, after), -after)
    fine, digits, exponent, _ = _one_by_one(data, start, end)
    if not fine:
        return False, 0.0
    return _scaled(digits, exponent)


@kernel()
def _one_by_one(data: Any, start: Any, end: Any) -> Any:
    """``(whether it is a decimal, digits, power of ten, whether it is more than digits)``."""
    digits, exponent, some, pointed = _U0, 0, False, False
    for at in range(start, end):
        byte = get(data, at)
        if _ZERO <= byte < _ZERO + 10:
            if digits >= _TENS[_MOST_DIGITS - 1]:
                return False, _U0, 0, True
            digits = digits * _TEN + np.uint64(byte - _ZERO)
            exponent -= pointed
            some = True
        elif byte == _POINT and not pointed:
            pointed = True
        elif byte in (_E, _CAPITAL_E) and some:
            fine, power = _exponent(data, at + 1, end)
            return fine, digits, exponent + power, True
        else:
            return False, _U0, 0, True
    return some, digits, exponent, pointed


@kernel()
def _exponent(data: Any, start: Any, end: Any) -> Any:
    """What follows an e: ``(whether it is a power of ten, the power)``."""
    sign, power = 1, 0
    if start < end and (get(data, start) == _MINUS or get(data, start) == _PLUS):
        sign = -1 if get(data, start) == _MINUS else 1
        start += 1
    if not 0 < end - start <= 4:
        return False, 0
    for at in range(start, end):
        if not _ZERO <= get(data, at) < _ZERO + 10:
            return False, 0
        power = power * 10 + (get(data, at) - _ZERO)
    return True, sign * power


@kernel()
def _scaled(digits: Any, power: Any) -> Any:
    """``(whether it could be rounded rightly, digits * 10**power)``."""
    if digits <= _EXACT and -_POWERS_EXACT <= power <= _POWERS_EXACT:
        value = np.float64(np.int64(digits))
        return True, value / _EXACT_TENS[-power] if power < 0 else value * _EXACT_TENS[power]
    if digits == _U0:
        return True, 0.0
    if not _SMALLEST <= power <= _LARGEST:
        return False, 0.0
    return _rounded(digits, power)


@kernel()
def _rounded(digits: Any, power: Any) -> Any:
    """The same by the first 192 bits of the product, which are enough for any 64 bits of digits.
    Not for what is too small for 53 bits, or infinite."""
    empty = zeros_before(digits)
    digits <<= np.uint64(empty)
    five = power - _SMALLEST
    upper, lower = high(digits, _UPPER[five]), digits * _UPPER[five]
    if upper & np.uint64(0x1FF) == np.uint64(0x1FF):  # a carry from below could reach what is kept
        more = high(digits, _LOWER[five])
        lower += more
        upper += _U1 if lower < more else _U0
    top = upper >> np.uint64(63)
    mantissa = upper >> (top + np.uint64(9))  # 54 bits: one more, to round by
    exponent = ((217706 * power) >> 16) + 63 + np.int64(top) - empty + 1023
    if not 0 < exponent < 2046:
        return False, 0.0
    # half-way between two: only where the digits times the power are exact
    exact = lower <= _U1 and -4 <= power <= 23 and mantissa << (top + np.uint64(9)) == upper
    if exact and mantissa & _U3 == _U1:
        mantissa &= ~_U1
    mantissa = (mantissa + (mantissa & _U1)) >> _U1
    if mantissa >> np.uint64(53):
        mantissa >>= _U1
        exponent += 1
    bits = np.uint64(exponent) << np.uint64(52) | mantissa & np.uint64(2**52 - 1)
    return True, as_double(bits)
