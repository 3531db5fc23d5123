"""Helpers as they are described: kinds of arguments and results, and what a run of a program gives
them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Protocol

from attrs import frozen

from .isa import Order
from .maps import Map, MapType


class Arg(Enum):
    """Kinds of a helper's argument."""

    CTX = "ctx"  # the context: r1 at entry, unchanged
    MAP = "map"  # a map, of one of Helper.maps
    KEY = "key"  # initialised memory of the map's key_size bytes
    KEY_OUT = "key out"  # writable memory of the map's key_size bytes; initialised afterwards
    VALUE = "value"  # initialised memory of the map's value_size bytes
    VALUE_OR_NULL = "value or NULL"  # as VALUE, or the number 0
    NUMBER_OUT = "number out"  # writable memory of 8 bytes; initialised afterwards
    VALUE_OUT = "value out"  # writable memory of the map's value_size bytes; initialised afterwards
    MEM = "memory"  # initialised memory; the next argument is its size
    # as MEM: words of 64 bits, some of which may be addresses of the program's own
    ARGUMENTS = "arguments of a format"
    MEM_OUT = "memory out"  # writable memory; the next argument is its size; initialised afterwards
    SIZE = "size"  # of the argument before: 1 or more
    SIZE_OR_ZERO = "size or zero"  # of the argument before; if it is 0, the memory is not looked at
    CONST_SIZE = "constant size"  # a constant, 1 or more: the size of the memory that is returned
    CONST_STR = "constant text"  # of a map that programs cannot write, with a NUL
    RECORD = "record"  # what ringbuf_reserve gave; consumed
    VALUE_MEM = "memory of a map's value"  # writable; the next argument is its size
    CONST_SIZE_OR_ZERO = "constant size or zero"  # as CONST_SIZE, or 0
    DYNPTR = "dynptr"  # one that was made
    DYNPTR_OUT = "dynptr out"  # 16 bytes of the stack; a dynptr afterwards
    DYNPTR_CLONE = "dynptr clone"  # as DYNPTR_OUT, of the data of the call's DYNPTR
    BUFFER_OR_NULL = "buffer or null"  # writable memory, of the constant size in the next argument
    DYNPTR_BACK = "dynptr given back"  # whose record is held; consumed
    SCALAR = "scalar"  # any number
    ANY = "any"  # anything, not necessarily initialised: an argument of a format


class Ret(Enum):
    """Kinds of a helper's result."""

    SCALAR = "scalar"
    MAP_VALUE_OR_NULL = "map value or null"  # of the map's value_size bytes
    SESSION = "session's number"  # 8 bytes that a call's entry leaves for its return
    # memory of CONST_SIZE bytes, to be submitted or discarded on every path
    RECORD_OR_NULL = "record or null"
    # memory of CONST_SIZE_OR_ZERO bytes, which ends with the dynptr that it is of
    SLICE_OR_NULL = "slice or null"
    READ_SLICE_OR_NULL = "read-only slice or null"  # as SLICE_OR_NULL, and read-only
    SAMPLE_OR_NULL = "sample or null"  # a dynptr of a user ring's sample, to be given back
    VOID = "void"  # r0 is not initialised


class RunPlace(Protocol):
    """Where a program runs: the guest at a probe, or none at all (a test run)."""

    @property
    def cpu(self) -> int:
        """The number of the CPU."""

    def read(self, addr: int, size: int) -> bytes:
        """Return `size` bytes of guest memory. Raises KprobeError where it is not mapped."""

    def clock(self) -> int:
        """Return the machine's clock, in ns."""

    def pid_tgid(self) -> int:
        """Return tgid << 32 | pid of the guest's task."""

    def comm(self) -> bytes:
        """Return the name of the guest's task, at most 15 bytes."""

    def stack(self, skip: int, depth: int) -> list[int]:
        """Return up to `depth` addresses: the probed one, then return addresses, innermost first.

        Args:
            skip: how many of the first are left out.
            depth: how many are returned at most.
        """

    def override(self, value: int) -> None:
        """Return from the probed function at once, with `value` as its result.

        Raises:
            KprobeError: the probe is not at a function's entry, or there is none.
        """

    def func_ip(self) -> int:
        """Return the address of the function that was probed at its entry or return; 0 for a probe
        inside a function.
        """

    def cookie(self) -> int:
        """Return the number given when the program was attached; 0 if none was."""

    def marker_argument(self, number: int) -> int | None:
        """Return an argument of the static tracepoint that was hit.

        Args:
            number: number of the argument, from 0.

        Returns:
            None: the tracepoint has fewer, or the probe is at none.

        Raises:
            KprobeError: it lies in memory that is not mapped.
        """

    def at_return(self) -> bool:
        """Return True where the probe is on a function's return."""

    def symbol(self, addr: int) -> tuple[str, int, int, str] | None:
        """Return the symbol that covers a guest address.

        Returns:
            (name, bytes from it to the address, size or 0, module or ""); None: there is none.
        """


class ProgramRun(Protocol):
    """A run of a program, as helpers see it.

    Attributes:
        place: the guest at the probe, or none at all.
        maps: address that LDDW loads -> map.
        order: byte order of the program's memory.
        rounds: how often may_loop was called in this run.
    """

    place: RunPlace
    maps: Mapping[int, Map]  # Map.address -> map
    order: Order  # of the program's memory
    rounds: int  # of loops that asked whether they may go on

    def read(self, addr: int, size: int) -> bytes:
        """Return bytes of the program's memory: of its stack, map values, records, the context."""

    def write(self, addr: int, data: bytes) -> None:
        """Write bytes to the program's memory."""

    def own(self, addr: int, size: int) -> bytes | None:
        """Return up to `size` bytes of the program's memory from an address on.

        They end where the value, record or frame does that the address is in.

        Returns:
            The bytes; None: the address is none of the program's.
        """

    def check(self, addr: int, size: int) -> None:
        """Check that the program may write bytes, before a helper makes them; raise if it may not.

        Args:
            addr: address of the first byte.
            size: how many.
        """

    def grant(self, addr: int, size: int) -> None:
        """Let the program access a record that it has reserved.

        Args:
            addr: address of the record's data.
            size: bytes of the data.
        """

    def revoke(self, addr: int) -> None:
        """End the program's access to a record, which is submitted or discarded.

        Args:
            addr: address of the record's data.
        """

    def printed(self, text: str) -> None:
        """Take a line of trace_printk."""


@frozen
class Helper:
    """A function that programs may call by its number.

    Attributes:
        number: Linux's number of it.
        name: Linux's name, without `bpf_`.
        args: kinds of r1, r2, ...; the helper does not look at later registers.
        returns: the kind of r0 afterwards.
        maps: types that a MAP argument may have; None: all.
        bounds: smallest and largest result as signed numbers; None: any 64 bits.
        run: called with the run and five registers; returns r0.
        formats: True for a helper that formats text: its `run` also takes `texts=`, which says
            which arguments are addresses in the program's own memory (facts.HelperCall.texts);
            None: their values tell.
    """

    number: int
    name: str
    args: tuple[Arg, ...]
    returns: Ret
    run: Callable[..., int]
    maps: frozenset[MapType] | None = None
    bounds: tuple[int, int] | None = None
    formats: bool = False
