"""Numbers from their bytes: integers, and the floating-point formats of the architectures."""

from __future__ import annotations

import math
import struct
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from ..arch._base import Arch
from ..errors import Unsupported
from ..regs import real_bits
from .registers import facts

if TYPE_CHECKING:
    from .types import CType

#: format -> (bits of the exponent, of the fraction, whether the integer bit is among the
#: fraction's)
_FORMATS: Final = {
    "half": (5, 10, False),
    "bfloat": (8, 7, False),
    "single": (8, 23, False),
    "double": (11, 52, False),
    "x87": (15, 64, True),
    "quad": (15, 112, False),
}
_QUAD: Final = ("_Float128", "__float128", "__ieee128", "f128")


def float_format(arch: Arch, name: str, size: int) -> str:
    """Return the format of a floating-point type, a key of _FORMATS; "" where it is not known.

    Args:
        arch: the architecture whose ABI says what `long double` is.
        name: of the base type.
        size: in bytes.
    """
    if size == 2:
        return "bfloat" if "bf" in name.lower() else "half"
    if size in (4, 8):
        return "single" if size == 4 else "double"
    if size == 16 and (name in _QUAD or "128" in name):
        return "quad"
    return facts(arch).long_double.get(size, "")


def number(type: CType, raw: int, arch: Arch) -> int | float | bool | complex:
    """Return the number that bytes of a type stand for; floats of more than 8 bytes are rounded.

    Args:
        type: a scalar type.
        raw: the bytes, as the unsigned number that they are in the type's byte order.
        arch: the guest's architecture.

    Raises:
        Unsupported: the type's kind, or the format of its numbers, is not known.
    """
    if type.kind == "float":
        return _float(raw, _known(type, arch, type.size))
    if type.kind == "complex":
        return _complex(type, raw, arch)
    if type.kind == "bool":
        return bool(raw)
    if type.kind == "other":
        raise Unsupported(
            f"{type.name} is of a kind whose numbers are not known", hint="read its bytes"
        )
    bits = type.bits
    raw &= (1 << bits) - 1
    return raw - (raw >> bits - 1 << bits) if type.signed and bits else raw


def _known(type: CType, arch: Arch, size: int) -> str:
    """Return the format of a floating-point type; as float_format(), but raises if it is not known.

    Args:
        type: the type.
        arch: the guest's architecture.
        size: bytes of a number; of a complex type half of its bytes.

    Returns:
        A key of _FORMATS.

    Raises:
        Unsupported: the format is not known.
    """
    form = float_format(arch, type.base_name, size)
    if not form:
        raise Unsupported(
            f"the format of {type.name} is not known on {arch.name}", hint="read its bytes"
        )
    return form


def _complex(type: CType, raw: int, arch: Arch) -> complex:
    """Return the complex number that bytes stand for; the real part comes first in memory.

    Args:
        type: a complex type.
        raw: the bytes, as the unsigned number that they are in the type's byte order.
        arch: the guest's architecture.

    Raises:
        Unsupported: the format of its parts is not known.
    """
    half = type.size // 2
    low, high = raw & (1 << 8 * half) - 1, raw >> 8 * half
    form = _known(type, arch, half)
    first, second = (low, high) if type.order == "little" else (high, low)
    return complex(_float(first, form), _float(second, form))


def single_of_double(raw: int) -> int:
    """Return the 32 bits of the number that a register has as a double; infinity for one too large.

    Args:
        raw: the double's 64 bits; further bits are ignored.
    """
    number = struct.unpack("<d", (raw & (1 << 64) - 1).to_bytes(8, "little"))[0]
    try:
        return int.from_bytes(struct.pack("<f", number), "little")
    except OverflowError:
        infinite = math.copysign(math.inf, number)
        return int.from_bytes(struct.pack("<f", infinite), "little")


def real_of_x87(raw: int, size: int) -> int:
    """Return the bits of a number that a register of x87 has, rounded to fewer bytes.

    Args:
        raw: the register's 80 bits.
        size: bytes of the number: 4 or 8.
    """
    double = int.from_bytes(struct.pack("<d", _float(raw, "x87")), "little")
    return double if size == 8 else single_of_double(double)


def _float(raw: int, form: str) -> float:
    """Return the floating-point number that bits stand for, rounded to Python's float.

    Numbers too large for that become infinite; a NaN keeps its sign.

    Args:
        raw: the bits, as an unsigned number. Bits beyond the format's width are ignored, but
            "double" must have none.
        form: the format, a key of _FORMATS.
    """
    if form == "double":
        return float(struct.unpack("<d", raw.to_bytes(8, "little"))[0])
    wide, fraction, explicit = _FORMATS[form]
    raw &= (1 << 1 + wide + fraction) - 1
    sign = -1.0 if raw >> wide + fraction else 1.0
    exponent = raw >> fraction & (1 << wide) - 1
    mantissa = raw & (1 << fraction) - 1
    bias = (1 << wide - 1) - 1
    if exponent == (1 << wide) - 1:
        quiet = mantissa & ~(1 << 63) if explicit else mantissa
        return math.copysign(math.nan if quiet else math.inf, sign)
    if explicit:
        fraction -= 1
    elif exponent:
        mantissa |= 1 << fraction
    scale = max(exponent, 1) - bias - fraction
    try:
        exact = Fraction(mantissa) * (
            Fraction(1 << scale) if scale >= 0 else Fraction(1, 1 << -scale)
        )
        return sign * float(exact)
    except OverflowError:
        return sign * math.inf


def real_number_bits(type: CType, value: float, arch: Arch) -> int:
    """Return the bits of a floating-point number as a type has it; the inverse of number().

    What is beyond the type's largest number is infinite; what is between two of its numbers is
    rounded to the nearest.

    Args:
        type: a floating-point type; of a complex one each half has this.
        value: the number.
        arch: the guest's architecture.

    Raises:
        Unsupported: the format of the type's numbers is not known, or is bfloat.
    """
    size = type.size // 2 if type.kind == "complex" else type.size
    form = _known(type, arch, size)
    if form in ("single", "double"):
        return real_bits(value, size)
    if form == "half":
        try:
            return int.from_bytes(struct.pack("<e", value), "little")
        except OverflowError:
            return 0x7C00 | (value < 0) << 15
    if form == "bfloat":
        raise Unsupported(
            f"numbers of {type.name} cannot be written", hint="write the bytes of one"
        )
    return _widened(real_bits(value, 8), *_FORMATS[form])


def _widened(double: int, wide: int, fraction: int, explicit: bool) -> int:
    """Return the bits of a double in a wider format.

    Args:
        double: its 64 bits.
        wide: bits of the wider format's exponent.
        fraction: bits of its fraction.
        explicit: True: the highest of these is the integer bit, which other formats leave out.
    """
    sign, exponent, mantissa = double >> 63, double >> 52 & 0x7FF, double & (1 << 52) - 1
    bias = (1 << wide - 1) - 1
    if exponent == 0x7FF:
        larger = (1 << wide) - 1
    elif exponent or mantissa:
        if not exponent:  # a subnormal number is a normal one in the wider format
            shift = 53 - mantissa.bit_length()
            mantissa = mantissa << shift & (1 << 52) - 1
            exponent = 1 - shift
        larger = exponent - 1023 + bias
    else:
        larger = 0
    whole = mantissa << fraction - explicit - 52
    if explicit and larger:
        whole |= 1 << fraction - 1
    return sign << wide + fraction | larger << fraction | whole
