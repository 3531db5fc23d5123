"""Calls of helpers: arguments of the kinds that they take, and what they return."""

from __future__ import annotations

from typing import Final

from .. import isa
from ..helpers import Arg, Helper, Ret
from ..maps import SESSION, Map, Maps, MapType
from ..meanings import LINE, MAY_LOOP, TAIL_CALL, UNSET
from .facts import Access
from .memory import (
    dynptr_at,
    make_dynptr,
    need_readable,
    need_room_for_dynptr,
    need_writable,
    pointed,
    pointers_among,
    text_at,
)
from .path import Path
from .scalar import Scalar, between, unknown
from .state import (
    CTX,
    DYNPTR,
    MAP,
    NAMES,
    RECORD,
    SAMPLE,
    SLICE,
    START,
    VALUE,
    MemoryRegion,
    Pointer,
    Value,
)

_SIZES: Final = (Arg.SIZE, Arg.SIZE_OR_ZERO)
_WRITTEN: Final = (Arg.MEM_OUT, Arg.VALUE_MEM)
#: helpers that change a map's values
_CHANGES: Final = ("map_update", "map_delete", "map_push", "map_pop")
_NUMBERS: Final = (
    "addresses of this machine are of no use in the guest; guest addresses are numbers"
)
#: helpers that in a kernel copy registers as well
_COPIES: Final = ("probe_read", "probe_read_kernel")
_ON_ONE_PATH: Final = "reads the context on one path and guest memory on another"
_APART: Final = "call the helper for each of them"
#: ends of names of helpers that may leave a part of their buffer as it was
_PARTLY: Final = ("_str", "get_stack", "dynptr_read")


def call(path: Path, helper: Helper) -> None:
    """Walk a call of a helper: check its arguments, and set r0 of the path to what it returns.

    r1 to r5 have no values afterwards. The call is noted in the findings; a record that it gives
    back is forgotten, a dynptr that it makes lies on the stack.

    Args:
        path: the path with the call, at the call.
        helper: the helper that is called.

    Raises:
        ProgramError: an argument is not what the helper takes; the guest does not have what is
            read; or a tail call while a record is held, or from a called function.
    """
    if helper.number == isa.MISSING:
        raise path.refuse(
            path.code.missing.get(path.pc, "reads what the guest has not"),
            "docs/programs.md lists the helpers"
            if path.pc in path.code.unknown
            else "build the guest with -g; ask with bpf_core_field_exists() before",
        )
    if helper.number == TAIL_CALL and (path.state.held or len(path.state.frames) > 1):
        raise path.refuse(
            "goes on with another program while a record is held"
            if path.state.held
            else "goes on with another program from a function of its own",
            "submit or discard the record first"
            if path.state.held
            else "call it in the program itself",
        )
    found = _Arguments(path, helper)
    for register, kind in enumerate(helper.args, 1):
        found.check(register, kind)
    path.called(helper, found.map, found.texts)
    path.rounds += helper.number == MAY_LOOP
    if found.given is not None:
        path.state.forget(found.given)
    if found.made is not None:
        cloned = found.dynptr if Arg.DYNPTR_CLONE in helper.args else None
        _make_dynptr(path, found.made, found.map, cloned)
    regs = path.state.regs
    regs[1:6] = [None] * 5
    regs[0] = _result(path, helper, found)


class _Arguments:
    """The arguments of one call, while they are checked.

    Attributes:
        map: the map among the arguments, or of the record; None: none so far.
        size: bytes of the memory that the helper returns, its constant size argument.
        given: the record that the helper submits or discards, or the dynptr of one; None: none.
        dynptr: the dynptr among the arguments; None: none.
        made: where on the stack the helper makes a dynptr; None: it makes none.
        most: bytes that the helper writes to a buffer, at most.
        texts: number of a format's argument -> bytes that may be read there; see
            facts.HelperCall.
    """

    def __init__(self, path: Path, helper: Helper) -> None:
        """Begin the check of a call's arguments.

        Args:
            path: the path with the call.
            helper: the helper.
        """
        self.path = path
        self.helper = helper
        self.map: Map | None = None
        self.size = 0
        self.most = 0
        self.given: MemoryRegion | None = None
        self.dynptr: MemoryRegion | None = None
        self.made: Pointer | None = None
        self.texts: dict[int, int] = {}

    def check(self, register: int, kind: Arg) -> None:
        """Check that a register holds what the helper takes there, and note map, sizes and records.

        Args:
            register: number of the register, 1 to 5.
            kind: what the helper takes there.

        Raises:
            ProgramError: the register holds something else.
        """
        if kind is Arg.ANY:
            self._show(
                register - self.helper.args.index(Arg.ANY) - 1, self.path.state.regs[register]
            )
            return
        path = self.path
        name = f"argument {register} of bpf_{self.helper.name}() (r{register})"
        value = path.read(register)
        if kind is Arg.CTX:
            self._context(register, name)
        elif kind is Arg.MAP:
            self.map = self._map(register, name)
        elif kind is Arg.SCALAR and self.helper.name in _COPIES and isinstance(value, Pointer):
            self._copy(value, name)
        elif kind in (Arg.SCALAR, Arg.CONST_SIZE, Arg.CONST_SIZE_OR_ZERO):
            if path.pc in path.findings.accesses and self.helper.name in _COPIES:
                raise path.refuse(_ON_ONE_PATH, _APART)
            if not isinstance(value, Scalar):
                raise path.refuse(f"{name} is a number, but {value} is given", _NUMBERS)
            if kind is not Arg.SCALAR:
                self.size = self._constant(value, name, kind is Arg.CONST_SIZE)
        elif kind is Arg.CONST_STR:
            self._text(value, name)
        elif kind is Arg.RECORD:
            self.given = self._record(register, name)
        elif kind in (Arg.DYNPTR_OUT, Arg.DYNPTR_CLONE):
            self.made = pointed(path, register)
            need_room_for_dynptr(path, self.made, name)
        elif kind is Arg.DYNPTR:
            self.dynptr = self._dynptr(register, name)
        elif kind is Arg.DYNPTR_BACK:
            self.given = self._held_dynptr(register, name)
        elif kind is Arg.BUFFER_OR_NULL:
            self._buffer(register, name)
        elif kind is Arg.NUMBER_OUT:
            self._access(register, 8, 8, name, True)
        elif (
            kind is Arg.VALUE_OR_NULL
            and isinstance(value, Scalar)
            and not value.mask
            and not value.value
        ):
            return
        elif kind in (Arg.KEY, Arg.KEY_OUT, Arg.VALUE, Arg.VALUE_OR_NULL, Arg.VALUE_OUT):
            self._of_map(register, kind, name)
        elif kind in (Arg.MEM, Arg.MEM_OUT, Arg.ARGUMENTS, Arg.VALUE_MEM):
            self._memory(register, kind, name)
        else:
            assert kind in _SIZES, kind

    def _copy(self, value: Pointer, name: str) -> None:
        """Note an access of the context by a helper that copies guest memory: what it is for where
        objects are made for a kernel. verify() refuses it unless it is asked for.

        Args:
            value: what is copied.
            name: names the argument in the error.

        Raises:
            ProgramError: it is no address in a probe's context; its bytes are not known, or of
                several words; or it is guest memory on another path.
        """
        path = self.path
        if value.region.kind != CTX or value.region.plain:
            raise path.refuse(f"{name} is a number, but {value} is given", _NUMBERS)
        if path.pc in path.findings.calls and path.pc not in path.findings.accesses:
            raise path.refuse(_ON_ONE_PATH, _APART)
        size = path.read(2)
        at = value.offset
        if (
            not isinstance(size, Scalar)
            or size.mask
            or at.mask
            or size.value not in (1, 2, 4, 8)
            or at.value % 8 + size.value > 8
        ):
            raise path.refuse(
                "reads the context with a size that varies, or over several of its words",
                "read one member at a time",
            )
        path.accessed(Access(CTX, size.value, at.value))

    def _context(self, register: int, name: str) -> None:
        """Check that a register holds the context's address, unchanged.

        Args:
            register: number of the register.
            name: names the argument in the error.

        Raises:
            ProgramError: the register holds something else.
        """
        value = self.path.read(register)
        if (
            not isinstance(value, Pointer)
            or value.region.kind != CTX
            or value.offset.mask
            or value.offset.value
        ):
            raise self.path.refuse(
                f"{name} is the context, but {value} is given",
                "pass on what the program was called with",
            )

    def _map(self, register: int, name: str) -> Map:
        """Return the map whose address a register holds.

        Args:
            register: number of the register.
            name: names the argument in the error.

        Raises:
            ProgramError: the register holds no map, or one that the helper does not take.
        """
        value = self.path.read(register)
        if not isinstance(value, Pointer) or value.region.kind != MAP or value.region.map is None:
            raise self.path.refuse(
                f"{name} is a map, but {value} is given",
                "pass the address of a variable of section .maps",
            )
        of = value.region.map
        if value.null:
            raise self.path.refuse(
                f"{name} may be NULL: {value}", "compare it with NULL before it is used"
            )
        if self.helper.maps is not None and of.type not in self.helper.maps:
            allowed = ", ".join(sorted(t.name.lower() for t in self.helper.maps))
            raise self.path.refuse(
                f"bpf_{self.helper.name}() does not work on map {of.name}, a "
                f"{of.type.name.lower()}",
                f"it takes {allowed}",
            )
        if of.readonly and self.helper.name.startswith(_CHANGES):
            raise self.path.refuse(
                f"bpf_{self.helper.name}() would change map {of.name}, which is read-only"
            )
        return of

    def _constant(self, value: Scalar, name: str, least: int) -> int:
        """Check that a size is constant, and return it in bytes.

        Args:
            value: the register's value.
            name: names the argument in the error.
            least: the smallest size that is allowed: 0 or 1.

        Raises:
            ProgramError: the size is not constant, too small, or 2**31 or more.
        """
        if value.mask or not least <= value.value < 1 << 31:
            raise self.path.refuse(
                f"{name} is a constant size{' of 1 byte or more' if least else ''}, but it is "
                f"{value}",
                "use sizeof; for sizes that vary there is bpf_ringbuf_output()",
            )
        return value.value

    def _text(self, value: Value | None, name: str) -> None:
        """Check that an argument is a constant text, and freeze its map: the text stays as it is.

        Args:
            value: the register's value.
            name: names the argument in the error.

        Raises:
            ProgramError: it is no text in read-only data, or has no NUL within LINE bytes.
        """
        of = (
            value.region.map
            if isinstance(value, Pointer) and value.region.kind == VALUE and not value.null
            else None
        )
        if not isinstance(value, Pointer) or of is None or not of.readonly or value.offset.mask:
            raise self.path.refuse(
                f"{name} is a constant text, but {value} is given",
                "give a text in quotation marks, or a static const array",
            )
        of.frozen = True
        start = value.offset.value
        if b"\0" not in bytes(of.block.view[start : min(start + LINE, of.value_size)]):
            raise self.path.refuse(
                f"{name} is a constant text, and this one has no end within {LINE} bytes",
                "put a NUL behind it",
            )

    def _record(self, register: int, name: str) -> MemoryRegion:
        """Return the record that a register points at the beginning of, and note its map.

        Args:
            register: number of the register.
            name: names the argument in the error.

        Raises:
            ProgramError: the register points at no record, or not at its beginning.
        """
        value = self.path.read(register)
        if not isinstance(value, Pointer) or value.region.kind != RECORD:
            raise self.path.refuse(
                f"{name} is a record of bpf_ringbuf_reserve(), but {value} is given"
            )
        pointed(self.path, register)
        if value.offset.mask or value.offset.value:
            raise self.path.refuse(f"{name} is the begin of a record, but {value} is given")
        self.map = value.region.map
        return value.region

    def _dynptr(self, register: int, name: str) -> MemoryRegion:
        """Return the dynptr that a register points at, on the stack or a callback's sample.

        Args:
            register: number of the register.
            name: names the argument in the error.

        Raises:
            ProgramError: it points at no dynptr.
        """
        pointer = pointed(self.path, register)
        if pointer.region.kind != SAMPLE:
            return dynptr_at(self.path, pointer, name)
        if pointer.offset.mask or pointer.offset.value:
            raise self.path.refuse(f"{name} is the begin of a dynptr, but {pointer} is given")
        return pointer.region

    def _held_dynptr(self, register: int, name: str) -> MemoryRegion:
        """Return the dynptr whose record a helper gives back, and note its map.

        Args:
            register: number of the register.
            name: names the argument in the error.

        Raises:
            ProgramError: it is no dynptr of such a record.
        """
        dynptr = self._dynptr(register, name)
        allowed = self.helper.maps or frozenset[MapType]()
        if dynptr.map is None or dynptr.map.type not in allowed:
            raise self.path.refuse(
                f"{name} is a dynptr of bpf_ringbuf_reserve_dynptr(), but another one is given",
                "dynptrs of other memory are not given back",
            )
        self.map = dynptr.map
        return dynptr

    def _of_map(self, register: int, kind: Arg, name: str) -> None:
        """Check that a register points at memory for a key, or a value, of the call's map.

        Args:
            register: number of the register.
            kind: KEY, KEY_OUT, VALUE, VALUE_OR_NULL or VALUE_OUT.
            name: names the argument in the error.

        Raises:
            ProgramError: the memory is too small, not initialised, or not writable.
        """
        assert self.map is not None, f"bpf_{self.helper.name}() has no map before its key or value"
        size = self.map.key_size if kind in (Arg.KEY, Arg.KEY_OUT) else self.map.value_size
        asked = self.map.type is MapType.BLOOM_FILTER  # its value is looked for, not taken out
        if size:
            self._access(
                register, size, size, name, kind in (Arg.KEY_OUT, Arg.VALUE_OUT) and not asked
            )

    def _memory(self, register: int, kind: Arg, name: str) -> None:
        """Check that a register points at memory of the size that is in the next register.

        Where the size is 0 for certain, the pointer may be anything. Notes the greatest size in
        `most` (MEM_OUT), or in `texts` what a format may show (ARGUMENTS).

        Args:
            register: number of the register.
            kind: MEM: the helper reads the memory; MEM_OUT: the helper writes to it; VALUE_MEM: as
                MEM_OUT, in a map's value; ARGUMENTS: the memory has the arguments of a format.
            name: names the argument in the error.

        Raises:
            ProgramError: the memory is smaller, not initialised, not writable, or not a map's value
                (VALUE_MEM); or the size may be negative, 2 GiB or more, or 0 and the helper does
                not take Arg.SIZE_OR_ZERO.
        """
        path = self.path
        size = self.path.read(register + 1)
        at = f"the size in r{register + 1}"
        if not isinstance(size, Scalar):
            raise path.refuse(f"{at} is a number, but {size} is given")
        optional = self.helper.args[register] is Arg.SIZE_OR_ZERO
        if size.smin < 0 or size.umax >= 1 << 31:
            raise path.refuse(
                f"{at} may be negative or huge: {size}",
                "bound it before: if (n > sizeof(buf)) n = sizeof(buf), with n unsigned",
            )
        if not size.umin and not optional:
            raise path.refuse(f"{at} may be 0: {size}", "check it before: if (!n) return 0")
        if kind is Arg.MEM_OUT:
            self.most = size.umax
        if kind is Arg.VALUE_MEM and pointed(path, register).region.kind != VALUE:
            raise path.refuse(
                f"{name} is memory of a map's value, but {path.read(register)} is given",
                "a dynptr outlives a function's variables: look an entry of a map up",
            )
        if size.umax and kind is Arg.ARGUMENTS:
            pointer = pointed(path, register)
            for number, value in pointers_among(path, pointer, size.umax).items():
                self._show(number, value)
            self._access(register, size.umin, size.umax, name, False)
        elif size.umax:
            self._access(register, size.umin, size.umax, name, kind in _WRITTEN)

    def _buffer(self, register: int, name: str) -> None:
        """Check that a register is 0, or points at writable memory of the size in the next
        register.

        A size that is no constant is left to the check of the next argument.

        Args:
            register: number of the register.
            name: names the argument in the error.

        Raises:
            ProgramError: it is another number, or the memory is smaller or not writable.
        """
        value = self.path.read(register)
        if isinstance(value, Scalar) and not value.mask and not value.value:
            return
        size = self.path.read(register + 1)
        if isinstance(size, Scalar) and not size.mask and 0 < size.value < 1 << 31:
            self._access(register, size.value, size.value, name, True)

    def _show(self, number: int, value: Value | None) -> None:
        """Note in `texts` how much of the program's memory a format may show of an argument.

        Args:
            number: number of the format's argument, from 0.
            value: the argument; None: nothing was written to its register.
        """
        if value is None or (isinstance(value, Pointer) and value.region.kind in (CTX, MAP)):
            self.texts[number] = UNSET
        elif isinstance(value, Pointer):
            self.texts[number] = text_at(self.path, value)

    def _access(self, register: int, least: int, most: int, name: str, out: bool) -> None:
        """Check that a helper may read or write where a register points, and note what it writes.

        Args:
            register: number of the register.
            least: bytes that the helper accesses at least.
            most: bytes that it accesses at most.
            name: names the argument in the error.
            out: True where the helper writes, False where it reads.

        Raises:
            ProgramError: the helper may not.
        """
        pointer = pointed(self.path, register)
        if pointer.region.kind == CTX and not pointer.region.plain:
            raise self.path.refuse(f"{name} is {NAMES[CTX]}", "copy what is needed to a variable")
        if out:
            need_writable(self.path, pointer, least, most, self.helper.name.endswith(_PARTLY))
        else:
            need_readable(self.path, pointer, most, name, Arg.ARGUMENTS in self.helper.args)


def _result(path: Path, helper: Helper, found: _Arguments) -> Scalar | Pointer | None:
    """Return the value of r0 after a call; add a record that the helper returns to `held`.

    Args:
        path: the path with the call.
        helper: the helper.
        found: the call's arguments, which are checked.

    Returns:
        None: the helper returns nothing, and r0 is not initialised.
    """
    if helper.returns is Ret.SCALAR:
        if helper.bounds is None:
            return unknown()
        low, high = helper.bounds
        return between(low, min(high, found.most) if Arg.MEM_OUT in helper.args else high)
    if helper.returns is Ret.SESSION:
        session = next(m for m in path.code.maps if m.name == SESSION)
        return Pointer(MemoryRegion(VALUE, 0, session.value_size, True, session), START)
    if helper.returns is Ret.MAP_VALUE_OR_NULL:
        assert found.map is not None
        if isinstance(found.map, Maps):
            return Pointer(MemoryRegion(MAP, 0, 0, False, found.map.inner), START, null=True)
        region = MemoryRegion(VALUE, 0, found.map.value_size, not found.map.readonly, found.map)
        return Pointer(region, START, null=True)
    if helper.returns is Ret.RECORD_OR_NULL:
        region = MemoryRegion(RECORD, 0, found.size, True, found.map)
        path.state.held += (region,)
        return Pointer(region, START, null=True)
    if helper.returns is Ret.SAMPLE_OR_NULL:
        region = MemoryRegion(SAMPLE, 0, 0, False, found.map)
        path.state.held += (region,)
        return Pointer(region, START, null=True)
    if helper.returns in (Ret.SLICE_OR_NULL, Ret.READ_SLICE_OR_NULL):
        writable = helper.returns is Ret.SLICE_OR_NULL
        region = MemoryRegion(SLICE, 0, found.size, writable, of=found.dynptr)
        return Pointer(region, START, null=True)
    return None


def _make_dynptr(
    path: Path, to: Pointer, of: Map | None, cloned: MemoryRegion | None = None
) -> None:
    """Put a new dynptr on the path's stack; add one of a ring's record to `held`.

    Args:
        path: the path with the call.
        to: where on the stack the dynptr is made.
        of: the ring whose record the dynptr is of; None: it is of other memory.
        cloned: the dynptr that it is a clone of; None: it is no clone. The clone of one whose data
            is given back ends with that.
    """
    root = cloned
    if cloned is not None and cloned.map is None:
        root = cloned.of
    dynptr = MemoryRegion(DYNPTR, 0, 0, False, of, of=root)
    if of is not None:
        path.state.held += (dynptr,)
    make_dynptr(path, to, dynptr)
