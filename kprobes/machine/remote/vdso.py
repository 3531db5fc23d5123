"""The kernel's functions in every process's memory (vDSO), as QEMU's user mode has them, too."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from ...arch._base import Arch
from ...arch._linux import Linux
from ...arch._rows import row
from ...errors import GuestFault

AT_SYSINFO_EHDR: Final = 33  #: of the auxiliary vector: where the vDSO lies
PT_LOAD, PT_DYNAMIC = 1, 2
DT_HASH, DT_STRTAB, DT_SYMTAB = 4, 5, 6
#: names of clock_gettime() with a struct timespec of two words
GETTIME: Final = (b"__vdso_clock_gettime", b"__kernel_clock_gettime")
MOST: Final = 256  #: entries of a table that are read


class Vdso:
    """The vDSO of a process. Its memory may hold anything: what cannot be read is not there."""

    def __init__(
        self, read: Callable[[int, int], bytes], vector: Mapping[int, int], arch: Arch
    ) -> None:
        """Prepare; nothing is read.

        Args:
            read: (address, size) -> guest memory.
            vector: the auxiliary vector, type -> value.
            arch: the architecture.
        """
        self._read = read
        self._base = vector.get(AT_SYSINFO_EHDR, 0)
        self._arch = arch
        self._word = arch.bits // 8

    def gettime(self) -> tuple[int, int] | None:
        """Return (address, end) of clock_gettime().

        None: there is no vDSO or no such function in it, its tables cannot be read, or its times
        are 64 bits wide in a 32-bit process.
        """
        linux = row(self._arch, Linux)
        if not self._base or (linux is not None and linux.wide_times):
            return None
        try:
            return next(
                ((start, end) for name, start, end in self._functions() if name in GETTIME), None
            )
        except GuestFault:
            return None

    def _functions(self) -> Iterator[tuple[bytes, int, int]]:
        """Yield (name, address, end) of each symbol that is defined; nothing where the file has no
        hash table, which tells how many there are.

        Raises:
            GuestFault: the file's tables are not where it says.
        """
        bias, dynamic = self._places()
        tags = dict(self._tags(dynamic))
        if not {DT_HASH, DT_STRTAB, DT_SYMTAB} <= tags.keys():
            return
        table, names, strings = (
            self._absolute(tags[tag], bias) for tag in (DT_HASH, DT_SYMTAB, DT_STRTAB)
        )
        entry = 24 if self._word == 8 else 16
        value_at, size_at = (8, 16) if self._word == 8 else (4, 8)
        for n in range(1, min(self._number(table + 4, 4), MOST)):
            at = names + n * entry
            value = self._number(at + value_at)
            size = self._number(at + size_at)
            if value:
                start = self._absolute(value, bias)
                yield self._string(strings + self._number(at, 4)), start, start + size

    def _places(self) -> tuple[int, int]:
        """Return (bytes that the file lies above its link address, address of its dynamic
        section, or 0).

        Raises:
            GuestFault: the file's headers are not where it says.
        """
        base = self._base
        wide = self._word == 8
        headers = base + self._number(base + (32 if wide else 28))
        step = self._number(base + (54 if wide else 42), 2)
        count = self._number(base + (56 if wide else 44), 2)
        bias = base
        dynamic = 0
        for at in range(headers, headers + min(count, MOST) * step, step or 1):
            kind = self._number(at, 4)
            linked = self._number(at + (16 if wide else 8))
            if kind == PT_LOAD and not self._number(at + (8 if wide else 4)):
                bias = base - linked
            if kind == PT_DYNAMIC:
                dynamic = linked
        return bias, dynamic and self._absolute(dynamic, bias)

    def _tags(self, dynamic: int) -> Iterator[tuple[int, int]]:
        """Yield (tag, value) of each entry of the dynamic section.

        Args:
            dynamic: its address; 0: there is none.
        """
        for n in range(MOST if dynamic else 0):
            at = dynamic + 2 * n * self._word
            tag = self._number(at)
            if not tag:
                return
            yield tag, self._number(at + self._word)

    def _absolute(self, value: int, bias: int) -> int:
        """Return the address that a value of the file means; QEMU may have relocated it already.

        Args:
            value: a link address, or an address.
            bias: bytes that the file lies above its link address.
        """
        return value if value >= self._base else (value + bias) & self._arch.mask

    def _number(self, at: int, size: int = 0) -> int:
        """Read an unsigned number from guest memory.

        Args:
            at: its address.
            size: its bytes; 0: those of a word.
        """
        order: Any = self._arch.order.value
        return int.from_bytes(self._read(at, size or self._word), order)

    def _string(self, at: int) -> bytes:
        """Read a name from guest memory: up to its NUL, at most 64 bytes."""
        return self._read(at, 64).partition(b"\0")[0]
