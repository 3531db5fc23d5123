"""Unicorn's C library, called with prebuilt arguments.

The binding's own register access costs five to ten times as much, so everything on the path of a
hit goes through here. Calls that never run guest code keep the GIL (PyDLL); uc_emu_start releases
it (CDLL), so that Ctrl-C, timers and other threads live while the guest runs.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from typing import Any

import unicorn
from unicorn import UC_ERR_OK, Uc, UcError
from unicorn import unicorn_const as const

from ... import native
from .host.outside import OutsideStops
from .version import library

_name = library()._name
_held = ctypes.PyDLL(_name)
_free = ctypes.CDLL(_name)
_u64, _size, _void = ctypes.c_uint64, ctypes.c_size_t, ctypes.c_void_p

_held.uc_mem_read.argtypes = (_void, _u64, _void, _size)
_held.uc_mem_write.argtypes = (_void, _u64, ctypes.c_char_p, _size)
_held.uc_context_alloc.argtypes = (_void, ctypes.POINTER(_void))
_held.uc_context_save.argtypes = _held.uc_context_restore.argtypes = (_void, _void)
_held.uc_context_free.argtypes = (_void,)
_held.uc_hook_add.argtypes = (_void, ctypes.POINTER(_size), ctypes.c_int, _void, _void, _u64, _u64)
_held.uc_hook_del.argtypes = (_void, _size)
_held.uc_emu_stop.argtypes = (_void,)
_held.uc_mem_regions.argtypes = (_void, ctypes.POINTER(_void), ctypes.POINTER(ctypes.c_uint32))
_held.uc_free.argtypes = (_void,)
_held.uc_mmio_map.argtypes = (_void, _u64, _size, _void, _void, _void, _void)
_held.uc_ctl.argtypes = (_void, ctypes.c_int)  # and more
# Three functions with prebuilt arguments only: no argtypes; of two no result.
_held.uc_reg_read.restype = _held.uc_reg_write.restype = None
write_batch = _held.uc_reg_write_batch  #: see cpu.pc_writer()
_start, _WITHOUT_TIMEOUT, _WITHOUT_COUNT = _free.uc_emu_start, _u64(0), _size(0)
#: addresses, for host code
WRITE = ctypes.cast(_held.uc_reg_write, _void).value or 0
READ = ctypes.cast(_held.uc_reg_read, _void).value or 0
MEM_READ = ctypes.cast(_held.uc_mem_read, _void).value or 0
CONTEXT_SAVE = ctypes.cast(_held.uc_context_save, _void).value or 0
CONTEXT_RESTORE = ctypes.cast(_held.uc_context_restore, _void).value or 0

INTR = ctypes.CFUNCTYPE(None, _void, ctypes.c_uint32, _void)
INSN = ctypes.CFUNCTYPE(None, _void, _void)
INVALID = ctypes.CFUNCTYPE(ctypes.c_bool, _void, _void)
CODE = ctypes.CFUNCTYPE(None, _void, _u64, ctypes.c_uint32, _void)
#: a function of the host's that may be a hook, and does nothing
NOTHING = ctypes.cast(ctypes.pythonapi.Py_IsInitialized, _void).value or 0
#: A CODE callback that declares two of its four arguments: those in later registers cost a
#: conversion each.
CALL = ctypes.CFUNCTYPE(None, _void, _u64)
DIRECT = ctypes.CFUNCTYPE(None)
MEM = ctypes.CFUNCTYPE(
    ctypes.c_bool, _void, ctypes.c_int, _u64, ctypes.c_int, ctypes.c_int64, _void
)


class TlbEntry(ctypes.Structure):
    """Answer of a hook of the virtual TLB.

    Attributes:
        paddr: physical address.
        perms: UC_PROT_* bits.
    """

    _fields_ = (("paddr", _u64), ("perms", ctypes.c_int))


TLB = ctypes.CFUNCTYPE(ctypes.c_bool, _void, _u64, ctypes.c_int, ctypes.POINTER(TlbEntry), _void)

PAGE = 4096
_REGION = struct.Struct("QQI0Q")
# for uc_ctl; it takes two more
REMOVE_CACHE = const.UC_CTL_TB_REMOVE_CACHE | 2 << 26 | const.UC_CTL_IO_WRITE << 30


class Engine:
    """An instance of Unicorn, called by its handle. `uc` is the binding's object, for everything
    that is not on the path of a hit.
    """

    def __init__(self, uc: Uc) -> None:
        """Wrap an engine that the binding has opened.

        Args:
            uc: the binding's object.
        """
        self.uc = uc
        self.handle = ctypes.c_void_p(uc._uch.value)
        self.version = unicorn.__version__
        #: What the engine may still use when its hook was deleted lives as long as the engine,
        #: whoever made that.
        self._kept: dict[int, Any] = uc.__dict__.setdefault("_kept_by_kprobes", {})
        self._contexts: list[ctypes.c_void_p] = []
        #: a stop has come since the last start: it ends this run and those it is nested in. A start
        #: makes the engine forget it
        self.stopped = False
        #: the run that ended last did so at an invalid instruction
        self.invalid = False
        #: a translation that ends in an undefined instruction is recorded without it: look for one
        #: that ends where that starts
        self.undefined_unrecorded = False
        #: readers and writers of registers that the engine's own contexts lack
        self.beside: list[tuple[Callable[[], int], Callable[[int], None]]] = []
        #: reader of a mark, and what puts guest memory that the CPU itself saves state in back to a
        #: mark, before a context is restored
        self.rewind: tuple[Callable[[], int], Callable[[int], None]] | None = None
        self._values: dict[int | None, list[int]] = {}  # context -> values of those registers
        self._marks: dict[int | None, int] = {}  # context -> mark
        #: guest address -> the engine's own address of that memory, which its functions take; None:
        #: they are the same
        self.place: Callable[[int], int] | None = None
        self._piece = ctypes.create_string_buffer(4096)
        #: (begin, until) -> the engine's error number: runs the guest
        self.run = self._make_run()
        #: who hears other threads; None: they stop the engine themselves
        self.outside: OutsideStops | None = None

    # --- registers

    def raw(self, register: int) -> tuple[Any, ...]:
        """Return what a caller needs to read and write a register by calling the engine itself, on
        the quickest paths.

        Args:
            register: the engine's number of the register.

        Returns:
            (C function that reads, C function that writes, the engine's handle, the number, the
            ctypes word that gets or has the value, a reference to it). Both functions take handle,
            number and reference.
        """
        cell = _u64()
        return (
            _held.uc_reg_read,
            _held.uc_reg_write,
            self.handle,
            ctypes.c_int(register),
            cell,
            ctypes.byref(cell),
        )

    def reader(self, register: int, bits: int) -> Callable[[], int]:
        """Make a function that reads a register: () -> its value.

        Args:
            register: the engine's number of it.
            bits: its width.
        """
        read, handle, number = _held.uc_reg_read, self.handle, ctypes.c_int(register)
        if bits <= 64 and native.available():
            names = native.words("reader")
            words = (_u64 * len(names))()
            words[names["engine"]] = self.handle.value or 0
            words[names["read"]] = READ
            words[names["number"]] = register
            self.keep(words)
            make = native.function("register_reader", ctypes.py_object, ctypes.py_object)
            return make(ctypes.addressof(words))  # type: ignore[no-any-return]
        if bits <= 64:
            cell = _u64()
            reference = ctypes.byref(cell)

            def narrow() -> int:
                """Return the register's value, of at most 64 bits."""
                read(handle, number, reference)
                return cell.value

            return narrow
        block = (ctypes.c_uint8 * 64)()

        def wide() -> int:
            """Return the register's value, of more than 64 bits."""
            read(handle, number, block)
            return int.from_bytes(bytes(block[: bits // 8]), "little")

        return wide

    def writer(self, register: int, bits: int) -> Callable[[int], None]:
        """Make a function that writes a register: (value), which is cut to the register's width.

        Args:
            register: the engine's number of it.
            bits: its width.
        """
        write, handle, number = _held.uc_reg_write, self.handle, ctypes.c_int(register)
        mask = (1 << bits) - 1
        if bits <= 64:
            cell = _u64()
            reference = ctypes.byref(cell)

            def narrow(value: int) -> None:
                """Write the register, of at most 64 bits."""
                cell.value = value & mask
                write(handle, number, reference)

            return narrow
        block = (ctypes.c_uint8 * 64)()

        def wide(value: int) -> None:
            """Write the register, of more than 64 bits."""
            ctypes.memmove(block, (value & mask).to_bytes(64, "little"), 64)
            write(handle, number, block)

        return wide

    # --- memory

    def read(self, addr: int, size: int) -> bytes | None:
        """Return guest memory; None where any of it is not mapped.

        Args:
            addr: address of the first byte.
            size: bytes.
        """
        if self.place is not None:
            addr = self.place(addr)
        buffer = self._piece if size <= 4096 else ctypes.create_string_buffer(size)
        if _held.uc_mem_read(self.handle, addr, buffer, size) != UC_ERR_OK:
            return None
        return ctypes.string_at(buffer, size)

    def write(self, addr: int, data: bytes) -> bool:
        """Write `data` to guest memory at `addr`, whatever its protection; return False where any
        of it is not mapped. Translations of code there are not dropped.
        """
        if self.place is not None:
            addr = self.place(addr)
        return bool(_held.uc_mem_write(self.handle, addr, data, len(data)) == UC_ERR_OK)

    def drop_translations(self, start: int, end: int) -> None:
        """Have the engine forget translated code that touches [start, end). Where
        `undefined_unrecorded`, code that touches the byte before `start` is forgotten, too.

        Args:
            start: address of the first byte.
            end: address behind the last byte.

        Raises:
            UcError: the engine refuses.
        """
        if self.undefined_unrecorded and start % PAGE:
            start -= 1
        # where a page is not mapped the engine drops nothing, or worse
        elif self.undefined_unrecorded and self.read(start - 1, 1):
            self._remove(start - 1, start)
        self._remove(start, min(end, (1 << 64) - 1))

    def _remove(self, start: int, end: int) -> None:
        """Have the engine forget the translations that touch [start, end) of its own addresses."""
        check(_held.uc_ctl(self.handle, REMOVE_CACHE, _u64(start), _u64(end)))

    def regions(self) -> list[tuple[int, int, int]]:
        """Return (first address, last address, UC_PROT_* bits) of all mapped memory.

        The binding's mem_regions() does the same, in four times as long.

        Raises:
            UcError: the engine refuses.
        """
        found, count = _void(), ctypes.c_uint32()
        check(_held.uc_mem_regions(self.handle, found, count))
        try:
            return [*_REGION.iter_unpack(ctypes.string_at(found, _REGION.size * count.value))]
        finally:
            _held.uc_free(found)

    def may_write(self, addr: int) -> bool:
        """Return True where an address lies in mapped memory that may be written. It is not
        translated: it is one that a hook of accesses has reported.
        """
        return any(
            start <= addr <= end and perms & const.UC_PROT_WRITE
            for start, end, perms in self.regions()
        )

    def retranslate(self) -> None:
        """Have the engine forget all translated code, so that it is translated with the hooks that
        there are now.
        """
        for start, end, perms in self.regions():
            if perms & const.UC_PROT_EXEC:
                self.drop_translations(start, end + 1)

    # --- running

    def _make_run(self) -> Callable[[int, int], int]:
        """Make the function `run`, which calls uc_emu_start() for this engine, without bounds:
        (begin, until) -> the engine's error number. It is host code where there is some.
        """
        if native.available():
            names = native.words("start")
            self._start = (_u64 * len(names))()
            self._start[names["engine"]] = self.handle.value or 0
            self._start[names["start"]] = ctypes.cast(_start, _void).value or 0
            make = native.function("engine_starter", ctypes.py_object, ctypes.py_object)
            return make(ctypes.addressof(self._start))  # type: ignore[no-any-return]
        first, last = _u64(), _u64()

        def run(begin: int, until: int) -> int:
            """Run the guest from `begin` until `until`; return the engine's error number, 0:
            none.
            """
            first.value = begin
            last.value = until
            return _start(  # type: ignore[no-any-return]
                self.handle,
                first,
                last,
                _WITHOUT_TIMEOUT,
                _WITHOUT_COUNT,
            )

        return run

    def start(self, begin: int, until: int) -> int:
        """Run the guest, and return the engine's error number; 0: none. The caller then calls
        ended().

        Args:
            begin: address where it starts, mode bits included.
            until: address where it ends.
        """
        self.stopped = self.invalid = False
        return self.run(begin, until)

    def starts(self) -> None:
        """Forget stops and errors of before, as start() does: a run begins that start() has not
        started.
        """
        self.stopped = self.invalid = False

    def ended(self, error: int) -> bool:
        """Note that a run has ended, and whether it was at an invalid instruction; return True if
        its error is one that a run nested in it has left behind.

        A run that ends at an invalid instruction leaves the error behind, and the outer one stops
        with it at the next pc write in a hook.

        Args:
            error: the engine's error number; 0: none.

        Returns:
            True where the error is that of the nested run: this run is to go on at its pc.
        """
        invalid = error == const.UC_ERR_INSN_INVALID
        nested, self.invalid = invalid and self.invalid, invalid
        return nested

    def stop(self) -> None:
        """Stop the run, from a hook. Another thread must not call this where `outside` is set: an
        instruction may be left half done.
        """
        self.stopped = True
        _held.uc_emu_stop(self.handle)

    # --- hooks

    def hook(
        self,
        kind: int,
        callback: Any,
        begin: int = 1,
        end: int = 0,
        data: int | None = None,
        insn: int = 0,
        flags: int = 0,
    ) -> int:
        """Add a hook, and return its handle, which unhook() takes.

        Args:
            kind: one of unicorn's UC_HOOK_ constants.
            callback: a ctypes callback, which is kept alive as long as the engine, or the address
                of a host function.
            begin: address of the first instruction or access that is hooked.
            end: address of the last one; less than `begin`: all are hooked.
            data: address that a host function is given; None: 0.
            insn: of UC_HOOK_INSN, the engine's number of the instruction; of UC_HOOK_TCG_OPCODE, of
                the operation.
            flags: of UC_HOOK_TCG_OPCODE.

        Raises:
            UcError: the engine refuses.
        """
        if not isinstance(callback, int):
            self.keep(callback)
        out = _size()
        function = _void(callback) if isinstance(callback, int) else ctypes.cast(callback, _void)
        check(
            _held.uc_hook_add(
                self.handle,
                ctypes.byref(out),
                kind,
                function,
                data,
                begin,
                end,
                ctypes.c_int(insn),
                ctypes.c_int(flags),
            )
        )
        return out.value

    def keep(self, what: Any) -> None:
        """Keep an object alive as long as the engine, which may still use it."""
        self._kept[id(what)] = what

    def unhook(self, hook: int) -> None:
        """Delete a hook.

        Args:
            hook: its handle, from hook().
        """
        _held.uc_hook_del(self.handle, hook)

    # --- contexts

    def save(self) -> ctypes.c_void_p:
        """Copy the whole CPU state, and return the copy, for restore() or discard(). Guest memory
        is not copied. Memory of a discarded copy is used again.

        Raises:
            UcError: the engine refuses.
        """
        if self._contexts:
            context = self._contexts.pop()
        else:
            context = ctypes.c_void_p()
            check(_held.uc_context_alloc(self.handle, ctypes.byref(context)))
        if error := _held.uc_context_save(self.handle, context):
            raise UcError(error)
        if self.beside or self.rewind is not None:
            self.save_beside(context)
        return context

    def restore(self, context: ctypes.c_void_p) -> None:
        """Set the CPU back to a saved state, which can be restored again.

        Guest memory that the CPU itself keeps state in is set back, too (`rewind`).

        Args:
            context: what save() has returned.

        Raises:
            UcError: the engine refuses.
        """
        self.rewind_to(context)
        if error := _held.uc_context_restore(self.handle, context):
            raise UcError(error)
        if self.beside:
            self.restore_beside(context)

    def save_beside(self, context: ctypes.c_void_p) -> None:
        """Keep what the engine's contexts lack, for a context: the values of registers (`beside`),
        and a mark of guest memory that the CPU itself keeps state in (`rewind`).

        Args:
            context: a saved state of the CPU.
        """
        self._values[context.value] = [read() for read, _ in self.beside]
        if self.rewind is not None:
            self._marks[context.value] = self.rewind[0]()

    def rewind_to(self, context: ctypes.c_void_p) -> None:
        """Set guest memory that the CPU itself keeps state in back to what it was at
        save_beside(), before the registers of a context are put back.

        Args:
            context: a saved state of the CPU.
        """
        if self.rewind is not None:
            self.rewind[1](self._marks[context.value])

    def restore_beside(self, context: ctypes.c_void_p) -> None:
        """Put the registers that the engine's contexts lack back to what save_beside() has kept for
        a context.

        Args:
            context: a saved state of the CPU.
        """
        for (_, write), value in zip(
            self.beside, self._values.get(context.value, ()), strict=False
        ):
            write(value)

    def discard(self, context: ctypes.c_void_p) -> None:
        """Give a saved state's memory back: the next save() uses it.

        Args:
            context: what save() has returned.
        """
        self._contexts.append(context)

    def close(self) -> None:
        """Free the memory of saved states that were discarded. The engine itself is the
        binding's.
        """
        for context in self._contexts:
            _held.uc_context_free(context)
        self._contexts.clear()


def map_device(engine: Engine, place: int, size: int, read: Any, write: Any) -> None:
    """Map a range of guest memory whose accesses call ctypes callbacks.

    Args:
        engine: the engine.
        place: address of the first byte, as the engine has it.
        size: bytes, whole pages.
        read: callback for reads. The caller keeps it, and `write`, alive.
        write: callback for writes.

    Raises:
        UcError: the engine refuses: memory is mapped there, say.
    """
    check(
        _held.uc_mmio_map(
            engine.handle,
            place,
            size,
            ctypes.cast(read, _void),
            None,
            ctypes.cast(write, _void),
            None,
        )
    )


def address_of(function: Any) -> int:
    """Return the address of a ctypes function in this process."""
    return ctypes.cast(function, _void).value or 0


def check(error: int) -> None:
    """Raise UcError for an error number other than 0."""
    if error != UC_ERR_OK:
        raise UcError(error)


#: engine error number -> (access of a GuestFault, POSIX signal number)
ERRORS = {
    const.UC_ERR_READ_UNMAPPED: ("read", 11),
    const.UC_ERR_WRITE_UNMAPPED: ("write", 11),
    const.UC_ERR_FETCH_UNMAPPED: ("fetch", 11),
    const.UC_ERR_READ_PROT: ("read", 11),
    const.UC_ERR_WRITE_PROT: ("write", 11),
    const.UC_ERR_FETCH_PROT: ("fetch", 11),
    const.UC_ERR_READ_UNALIGNED: ("read", 7),
    const.UC_ERR_WRITE_UNALIGNED: ("write", 7),
    const.UC_ERR_FETCH_UNALIGNED: ("fetch", 7),
    const.UC_ERR_INSN_INVALID: ("undefined", 4),
    const.UC_ERR_EXCEPTION: ("interrupt", 5),
}
