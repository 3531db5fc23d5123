"""Programs, as users see them."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from attrs import frozen

from ..arguments import checked, shown
from ..errors import BadArgument, ProgramError
from .code import CONTEXT_SIZE, Code
from .engines import ProgramEngine, best, named
from .isa import Instruction, Order
from .linker import link
from .maps import Map
from .nowhere import Nowhere
from .object.values import Types
from .object.variables import Variables

if TYPE_CHECKING:
    from ..machine._views import HostCodeView
    from .framed import DetourGuest, Framed
    from .host import HostCode
    from .verifier import Facts


@frozen(eq=False)  # its map would be compared entry by entry
class AtEntry:
    """The part of a program that runs at a function's entry for a program at its return.

    Attributes:
        program: writes one value of `kept`: that whose index is the number of the call
            (call_slot()).
        kept: an array of meanings.SLOTS values; at the return of that call the other program reads
            the value at the same index.
    """

    program: Program
    kept: Map


@checked("__init__")
class Program:
    """A probe program, or all programs of an object file.

    With several, `prog["name"]` is one of them, and iterating gives all.

    Attributes:
        name: name of its entry function, or of the object.
        codes: name -> instructions of each program.
        maps: name -> map, data sections (".bss", ".rodata") included; a map without a name goes by
            its number.
        variables: the global variables, name -> value; those of .rodata can be set before the first
            verify(), run() or attach that is not refused.
        types: name -> ctypes structure, of those that variables, maps and parameters refer to; for
            records of ring buffers.
        broken: name of a program of the object's that is not supported here -> why.
        printed: the lines of trace_printk in test runs.
        why_interpreter: why a run without `engine` was the interpreter's, as one clause; "" where
            host code ran, or the interpreter was asked for.
        at_entry: for a program at a return, one that runs at the function's entry and keeps
            something for it; None: there is none.
        result_at: for a program at a return, the register that has the address of the result at the
            function's entry: the context's result is this address; "": it is the result register.
        entry_words: for a program at a return, numbers of the context's words whose values are
            those of the function's entry.
    """

    def __init__(
        self,
        name: str,
        codes: Mapping[str, Code],
        maps: Mapping[str, Map],
        variables: Variables | None = None,
        types: Types | None = None,
        *,
        at_entry: AtEntry | None = None,
        result_at: str = "",
        entry_words: Sequence[int] = (),
    ) -> None:
        """Make programs of code that a loader or a linker gives; the classmethods do that.

        Args:
            name: name of the entry function, or of the object.
            codes: name -> instructions of each program.
            maps: name -> map.
            variables: the global variables; None: there are none.
            types: structures by name; None: there are none.
            at_entry: of a program at a return: one that runs at the function's entry and keeps
                something for it; None: there is none.
            result_at: of a program at a return: register that has the result's address at the
                entry; "": the result is in the result register.
            entry_words: of a program at a return: numbers of the context's words whose values are
                those of the entry.
        """
        self.name = name
        self.codes = dict(codes)
        self.maps = dict(maps)
        self.variables = Variables({}) if variables is None else variables
        self.types = Types() if types is None else types
        self.broken: Mapping[str, ProgramError] = {}
        self.printed: list[str] = []
        self.why_interpreter = ""
        self.at_entry = at_entry
        self.result_at = result_at
        self.entry_words = entry_words
        self._engines: dict[tuple[str | None, bool | None, int], tuple[ProgramEngine, str]] = {}
        self._facts: Facts | None = None
        # machines may go
        self._sites: WeakKeyDictionary[HostCodeView, dict[str, HostCode]] = WeakKeyDictionary()
        self._frames: WeakKeyDictionary[DetourGuest, Framed] = WeakKeyDictionary()
        self._parts: dict[str, Program] = {}

    @classmethod
    def from_c(
        cls, text: str, name: str | None = None, cpus: int = 1, include: Sequence[str] = ()
    ) -> Program:
        """Compile C source for BPF by ziglang's clang (-O2 -g), and load its programs.

        `#include <kprobes/bpf.h>` is found, and so are libbpf's headers, whose names are in it.

        Args:
            text: the source.
            name: name of the file, for messages; None: "program.c".
            cpus: how many values each entry of a per-CPU map has.
            include: paths of folders with other headers.

        Raises:
            ProgramError: it does not compile, ziglang is not installed, or the object has no
                program or something that is not supported here.
            BadArgument: `include` has something else than paths.
        """
        from .object.clang import compiled

        for folder in include:
            if not isinstance(folder, str | os.PathLike):
                raise BadArgument(f"include has {folder!r}", hint="pass paths of folders")
        name = name or "program.c"
        return cls._loaded(
            compiled(text, name, tuple(os.path.abspath(folder) for folder in include)), name, cpus
        )

    @classmethod
    def from_file(
        cls, path: str | os.PathLike[str], cpus: int = 1, include: Sequence[str] = ()
    ) -> Program:
        """Load programs of a file: C source where its name ends in .c, else an object.

        Args:
            path: path of the file; headers beside it are found.
            cpus: how many values each entry of a per-CPU map has.
            include: paths of folders with other headers.

        Raises:
            ProgramError: there is no such file, it does not compile, or it has no program or
                something that is not supported here.
            BadArgument: `include` has something else than paths.
        """
        place = Path(path)
        if place.suffix != ".c":
            return cls.from_elf(path, cpus)
        try:
            text = place.read_bytes().decode(errors="surrogateescape")
        except OSError as error:
            raise ProgramError(
                error.strerror or str(error),
                program=os.fspath(path),
                hint="give the path of a file in C, prog.bpf.c",
            ) from None
        return cls.from_c(text, place.name, cpus, (os.fspath(place.parent), *include))

    @classmethod
    def from_elf(cls, source: str | os.PathLike[str] | bytes, cpus: int = 1) -> Program:
        """Load programs of an object.

        Args:
            source: a path, or the object's bytes.
            cpus: how many values each entry of a per-CPU map has.

        Raises:
            ProgramError: it is not there, damaged, not for BPF, without programs, or has something
                that is not supported here.
        """
        if isinstance(source, (bytes, bytearray, memoryview)):
            return cls._loaded(bytes(source), "object", cpus)
        try:
            data = Path(source).read_bytes()
        except (OSError, ValueError) as error:
            reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
            raise ProgramError(
                reason,
                program=os.fspath(source),
                hint="give the path of an object made by clang -target bpf -c",
            ) from None
        return cls._loaded(data, os.fspath(source), cpus)

    @classmethod
    def from_instructions(
        cls,
        raw: bytes | Iterable[Instruction],
        maps: Mapping[int | str, Map] | None = None,
        name: str = "main",
        order: Order = "little",
    ) -> Program:
        """Make a program of instructions.

        Args:
            raw: bytes, 8 for each slot, or isa.Instruction.
            maps: file descriptor -> map for LDDW's MAP_FD, and the maps in their order for LDDW's
                MAP.
            name: name of the program.
            order: byte order of the bytes, and of the program's memory.

        Raises:
            ProgramError: they are not whole instructions, or a map is not there.
            BadArgument: `order` is neither "little" nor "big".
        """
        if order not in ("little", "big"):
            raise BadArgument(f"order is {shown(order)}", hint='pass "little" or "big"')
        code = link(raw, maps or {}, name, order)
        return cls(
            name, {name: code}, {m.name or str(number): m for number, m in enumerate(code.maps)}
        )

    @classmethod
    def _loaded(cls, data: bytes, name: str, cpus: int) -> Program:
        """Return the programs of an object, with what its maps hold from the beginning.

        An array of programs does not get those that are not supported here (`broken`).

        Args:
            data: the object's bytes.
            name: name of the object, for messages.
            cpus: how many values each entry of a per-CPU map has.

        Raises:
            ProgramError: the object is damaged, or has no program that is supported here.
        """
        from .object.loader import load

        loaded = load(data, name, cpus)
        name = next(iter(loaded.codes)) if len(loaded.codes) == 1 else name
        made = cls(name, loaded.codes, loaded.maps, loaded.variables, loaded.types)
        made.broken = loaded.broken
        for m, index, what in loaded.held:
            held = made[what] if isinstance(what, str) and what in made.codes else what
            if not isinstance(held, str):
                m[index] = held  # type: ignore[assignment]
        return made

    # ---- one of several

    def __getitem__(self, name: str) -> Program:
        """Return a program of an object, which shares maps and variables with the others: this one
        itself where the object has no other.

        Raises:
            ProgramError: there is none of this name, or it could not be loaded: the error in
                `broken`.
        """
        if name in self.broken:
            raise self.broken[name]
        if name not in self.codes:
            near = difflib.get_close_matches(name, self.codes, 3) or list(self.codes)
            raise ProgramError(
                f"there is no program {name!r}",
                program=self.name,
                hint=f"there is {', '.join(near)}",
            )
        if len(self.codes) == 1:
            return self
        if name not in self._parts:
            self._parts[name] = Program(
                name, {name: self.codes[name]}, self.maps, self.variables, self.types
            )
        return self._parts[name]

    def __iter__(self) -> Iterator[Program]:
        return iter([self[name] for name in self.codes])

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def code(self) -> Code:
        """The program's instructions.

        Raises:
            ProgramError: there are several programs.
        """
        if len(self.codes) > 1:
            raise ProgramError(
                "has several programs",
                program=self.name,
                hint=f"take one of them: {', '.join(f'[{n!r}]' for n in self.codes)}",
            )
        return next(iter(self.codes.values()))

    @property
    def section(self) -> str:
        """Name of the object's section that the program is in, which says its place; or ""."""
        return self.code.section

    def replaced(self, code: Code) -> Program:
        """Return a new program of other instructions that shares maps and variables with this one.

        Args:
            code: the instructions.

        Raises:
            ProgramError: `code` is no Code.
        """
        if not isinstance(code, Code):
            raise ProgramError(
                f"a {type(code).__name__} is no Code", program=self.name, hint="pass Program.code's"
            )
        return Program(
            self.name,
            {code.name: code},
            self.maps,
            self.variables,
            self.types,
            at_entry=self.at_entry,
            result_at=self.result_at,
            entry_words=self.entry_words,
        )

    # ---- running

    def verify(self) -> Facts:
        """Verify the program, once, and return what holds for each of its runs.

        Its constants (.rodata) cannot be set any more afterwards, unless it is refused.

        Raises:
            ProgramError: it is not safe, or that could not be shown.
        """
        if self._facts is None:
            from .verifier import verify

            with self.unless_refused():
                self._facts = verify(self.code)
        return self._facts

    @contextmanager
    def unless_refused(self) -> Iterator[None]:
        """Freeze the program's constants (.rodata) as it is verified: a context manager.

        Inside the with block, all constants of a section of which the verifier has used one cannot
        be set any more; after it none at all can. Where the block raises, those can be set that
        could be before, and what was verified and compiled in it is dropped.
        """
        frozen = self.variables.frozen
        maps = [m for code in self.codes.values() for m in code.maps]
        before = [m.frozen for m in maps]
        try:
            yield
        except BaseException:
            if not frozen or before != [m.frozen for m in maps]:
                self._forget()
            self.variables.frozen = frozen
            for m, was in zip(maps, before, strict=True):
                m.frozen = was
            raise
        self.variables.frozen = True

    def _forget(self) -> None:
        """Drop facts, engines and compiled code, which were made for the constants as they were."""
        self._facts = None
        for made in (self._engines, self._sites, self._frames):
            made.clear()
        for part in self._parts.values():
            part._forget()

    def run(self, ctx: bytes | bytearray = b"", engine: str | None = None) -> int:
        """Run the program without a guest, as a test; `printed` gets the lines of trace_printk.

        Args:
            ctx: the memory that r1 points at (r2 is its size), with zeros behind it; a bytearray
                may be written by the program. It is memory as any other: a probe's context is read
                only, and in whole words.
            engine: "interpreter" (it takes what verify() refuses, and checks each access), "host"
                (compiled; verified first); None: the best there is, and `why_interpreter` says why
                where that is the interpreter.

        Returns:
            r0 at its end, unsigned 64 bits.

        Raises:
            ProgramError: the program does what it may not do, or there is no such engine.
            Unsupported: the engine does not run on this host.
        """
        size = CONTEXT_SIZE
        while size < len(ctx):  # a few sizes: the program is verified for each
            size *= 2
        return self._made(engine, isinstance(ctx, bytearray), size).run(
            ctx, Nowhere(), self.printed.append
        )

    def engine(self, name: str | None = None) -> ProgramEngine:
        """Return the engine that runs this program at probes, made once; set `why_interpreter`.

        Args:
            name: name of the engine; None: the best there is.

        Raises:
            ProgramError: there is no such engine, or it runs verified programs only, and this one
                is refused.
            Unsupported: the named engine does not run here.
        """
        return self._made(name, None, CONTEXT_SIZE)

    def _made(self, name: str | None, writable: bool | None, size: int) -> ProgramEngine:
        """Return an engine that runs the program; one is made for each set of arguments.

        Sets `why_interpreter`: to "" where an engine is named.

        Args:
            name: the engine's name; None: the best that can run the program.
            writable: whether the program may write its context; None: the context is a probe's,
                which is read only, in whole words.
            size: bytes of the largest context.

        Raises:
            ProgramError: there is no such engine, or it runs verified programs only, and this one
                is refused.
            Unsupported: the named engine does not run here.
        """
        key = name, writable, size
        if key not in self._engines:
            with self.unless_refused():
                self._engines[key] = self._make(name, writable, size)
        engine, self.why_interpreter = self._engines[key]
        return engine

    def at_sites(self, view: HostCodeView, clock: str) -> HostCode:
        """Return the program as host code for probes of one machine, which is made once for each
        view and clock.

        Args:
            view: the machine's view for host code.
            clock: what ktime_get_ns is: HOST_CLOCK or INSTRUCTION_CLOCK, which the code reads by
                itself; "": it calls Python.

        Raises:
            ProgramError: the program is not safe.
            Unsupported: this program, or this computer, cannot have host code.
        """
        from .site import compiled

        with self.unless_refused():
            made = self._sites.setdefault(view, {})
            if clock not in made:
                made[clock] = compiled(self.code, view, clock, self.verify())
            return made[clock]

    def in_guest(self, view: DetourGuest) -> Framed:
        """Return the program as code of the guest's for detours, which is compiled once a machine.

        Args:
            view: the machine's access to guest memory and code.

        Raises:
            ProgramError: the program is not safe.
            Unsupported: this program cannot run there, or no program can.
        """
        from .framed import compiled

        with self.unless_refused():
            if view not in self._frames:
                self._frames[view] = compiled(self.code, view, self.verify().cleared)
            return self._frames[view]

    def _make(
        self, name: str | None, writable: bool | None, size: int
    ) -> tuple[ProgramEngine, str]:
        """Make an engine for the program.

        Args:
            name: the engine's name; None: the best that can run it.
            writable: whether the program may write its context; None: it is a probe's.
            size: bytes of the largest context.

        Returns:
            (the engine, why it is the interpreter although none was named, as one clause; else "").

        Raises:
            ProgramError: there is no such engine, or it runs verified programs only, and this one
                is refused.
            Unsupported: the named engine does not run here.
        """
        from .verifier import memory, verify  # what never runs here needs no verifier

        facts = self._facts if writable is None else None
        if name != "interpreter":
            try:
                facts = (
                    self.verify()
                    if writable is None
                    else verify(self.code, context=memory(size, writable))
                )
            except ProgramError as error:
                if name is not None:
                    raise
                return named(
                    "interpreter", self.code, None
                ), f"it is refused by the verifier: {error.reason}"
        return (
            best(self.code, facts, size)
            if name is None
            else (named(name, self.code, facts, size), "")
        )

    def __repr__(self) -> str:
        sections = ", ".join(f"{name} {code.section}".strip() for name, code in self.codes.items())
        count = sum(len(code.instructions) for code in self.codes.values())
        return f"<Program {sections}: {count} instructions>"


__all__ = ["Program", "ProgramError"]
