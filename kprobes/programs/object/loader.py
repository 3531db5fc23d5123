"""From an object to programs: each entry function with all that it calls, and its maps and
variables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from attrs import evolve, field, frozen

from ...btf import DATASEC, PTR, Btf
from ...errors import ProgramError
from .. import isa
from ..code import Code, CodeLine, TypeRelocation
from ..helpers import HELPERS
from ..isa import Instruction, decode
from ..maps import SESSION, Map, Maps, MapType, Programs, Spec, create
from ..meanings import (
    DYNPTR_ADJUST,
    DYNPTR_CLONE,
    DYNPTR_IS_NULL,
    DYNPTR_IS_RDONLY,
    DYNPTR_SIZE,
    DYNPTR_SLICE,
    DYNPTR_SLICE_RDWR,
    SESSION_COOKIE,
    SESSION_IS_RETURN,
)
from . import callbacks
from .btf_ext import Ext
from .elf import ObjectFile, ObjectRelocation, ObjectSymbol, damage_is_error
from .maps import data_map, defined, is_data
from .named import named
from .registers import KERNELS, KernelsContext, foreign
from .values import Types, Values
from .variables import GlobalVariable, Variables

_LDDW_TYPE: Final = 1
_CALL_TYPE: Final = 10
#: kernel functions that are helpers here
HELPED: Final = {
    "bpf_session_cookie": SESSION_COOKIE,
    "bpf_session_is_return": SESSION_IS_RETURN,
    "bpf_dynptr_size": DYNPTR_SIZE,
    "bpf_dynptr_is_null": DYNPTR_IS_NULL,
    "bpf_dynptr_is_rdonly": DYNPTR_IS_RDONLY,
    "bpf_dynptr_adjust": DYNPTR_ADJUST,
    "bpf_dynptr_clone": DYNPTR_CLONE,
    "bpf_dynptr_slice": DYNPTR_SLICE,
    "bpf_dynptr_slice_rdwr": DYNPTR_SLICE_RDWR,
}
#: helpers of Linux's timers, which are not here -> what follows bpf_timer_
_TIMERS: Final = {169: "init", 170: "set_callback", 171: "start", 172: "cancel"}
#: what programs ask of a kernel's configuration -> what there is
_CONFIGURED: Final = {"LINUX_KERNEL_VERSION": 6 << 16 | 12 << 8, "LINUX_HAS_BPF_COOKIE": 1}
#: section that <kprobes/bpf.h> leaves in an object
_HEADER: Final = ".kprobes.header"
_UNDEFINED: Final = "define it in this object: nothing is linked in from elsewhere"


@frozen(eq=False)
class Loaded:
    """The contents of an object.

    Attributes:
        codes: name -> program, in the object's order.
        maps: name -> map, data sections by their names.
        variables: global variables.
        types: structures by name.
        broken: name of a program that is not supported here -> why.
        held: (map, index, what it holds there from the beginning): a map, or a program by its name.
    """

    codes: Mapping[str, Code]
    maps: Mapping[str, Map]
    variables: Variables
    types: Types
    broken: Mapping[str, ProgramError]
    held: Sequence[tuple[Maps | Programs, int, Map | str]] = ()


@frozen(eq=False)
class _Object:
    """An object while it is loaded.

    Attributes:
        file: the ELF file.
        ext: source lines and relocations by type.
        maps: all maps, data sections included.
        index: (section, offset) of maps and (section, -1) of data sections -> number of the map.
        functions: (section, offset) -> symbol of the function there.
        license: the license that the object names.
        named: (section, offset) of code -> register that it names.
        absent: number of a map that is not supported here -> why.
        refused: numbers of those maps in `absent` that a program refers to; filled.
        foreign: function -> the kernel's structure that it takes its context for.
        config: variable of the kernel's configuration -> offset in its map.
        kernels: names of functions that are a kernel's.
    """

    file: ObjectFile
    ext: Ext
    maps: tuple[Map, ...]
    index: Mapping[tuple[int, int], int]
    functions: Mapping[tuple[int, int], ObjectSymbol]  #: (section, offset) -> function
    license: str = ""
    named: Mapping[tuple[int, int], str] = field(factory=dict)  #: (section, offset) -> register
    #: number of a map that cannot be here -> why
    absent: Mapping[int, ProgramError] = field(factory=dict)
    refused: set[int] = field(factory=set)  #: of these maps, those that programs were refused for
    #: function -> what it takes its context for
    foreign: Mapping[str, KernelsContext] = field(factory=dict)
    #: variable of the kernel's configuration -> offset in its map
    config: Mapping[str, int] = field(factory=dict)
    kernels: frozenset[str] = frozenset()  #: functions that are a kernel's


def load(data: bytes, name: str, cpus: int = 1) -> Loaded:
    """Load all programs of an object.

    Args:
        data: the object's bytes.
        name: the object's name, for messages.
        cpus: how many values each entry of a per-CPU map has.

    Returns:
        Programs by name, maps, variables, types, and what maps hold from the beginning. A program
        that cannot be linked is left out, and its error is in `broken`.

    Raises:
        ProgramError: it has no program, a static one, or none that can be linked; it is damaged; or
            it defines a map that is not supported here and that no program refers to.
    """
    file = ObjectFile(data, name)
    with damage_is_error(name):
        btf, ext = _types(file)
        values = Values(btf)
        maps, absent = defined(file, btf, values, cpus)
        maps.update({(s.index, -1): data_map(s, file, btf) for s in file.sections if is_data(s)})
        if any(s.name == "bpf_session_cookie" and not s.section for s in file.symbols):
            maps[-1, 0] = create(
                Spec(
                    type=MapType.ARRAY,
                    name=SESSION,
                    key_size=4,
                    value_size=8,
                    max_entries=1,
                    order=file.order,
                )
            )
        configured, config = _kconfig(file, btf)
        if configured is not None:
            maps[-1, 1] = configured
        index = {where: number for number, where in enumerate(maps)}
        functions = {
            (s.section, s.value): s for s in file.symbols if s.type == "FUNC" and s.section
        }
        obj = _Object(
            file,
            ext,
            tuple(maps.values()),
            index,
            functions,
            _license(file),
            named(file),
            {index[where]: error for where, error in absent.items()},
            set(),
            foreign(btf),
            config,
            _kernel_functions(btf),
        )
        codes = {}
        broken = {}
        maps_at = list(maps)
        for s in _entries(obj):
            try:
                codes[s.name] = _Linker(obj, s).link()
            except ProgramError as error:
                broken[s.name] = error
        unused = absent.keys() - {maps_at[number] for number in obj.refused}
        if unused:
            raise absent[min(unused)]
        if not codes:
            raise next(iter(broken.values()))
        maps_by_name = {m.name: m for where, m in maps.items() if where not in absent}
        held = list(
            _held(file, btf, {where: m for where, m in maps.items() if where not in absent})
        )
        return Loaded(
            codes, maps_by_name, _variables(obj, btf, values), Types(values), broken, held
        )


def _held(
    file: ObjectFile, btf: Btf, maps: Mapping[tuple[int, int], Map]
) -> Iterator[tuple[Maps | Programs, int, Map | str]]:
    """Yield what maps of maps and of programs hold from the beginning: C's `.values = {...}`.

    Args:
        file: the object.
        btf: the object's types.
        maps: (index of the section, offset in it) -> the map that is defined there.

    Yields:
        (map, index, what it holds there): a map, or the name of a program.
    """
    types = btf.variables()
    for s in file.symbols:
        m = maps.get((s.section, s.value))
        if s.type != "OBJECT" or not isinstance(m, (Maps, Programs)) or s.name not in types:
            continue
        at = next(
            (where // 8 for name, _, where in btf.plain(types[s.name]).items if name == "values"),
            None,
        )
        if at is None:
            continue
        data = file.sections[s.section].data
        for offset, relocation in file.relocations.get(s.section, {}).items():
            index, rest = divmod(offset - s.value - at, 8)
            if not 0 <= index < max(m.max_entries, 1) or rest or offset >= s.value + s.size:
                continue
            symbol = relocation.symbol
            where = symbol.value + int.from_bytes(data[offset : offset + 8], file.order)
            inner = maps.get((symbol.section, where))
            if isinstance(m, Maps) and inner is not None:
                yield m, index, inner
            elif isinstance(m, Programs):
                named = (
                    f.name
                    for f in file.symbols
                    if f.type == "FUNC" and (f.section, f.value) == (symbol.section, where)
                )
                yield from ((m, index, name) for name in named)


def _kconfig(file: ObjectFile, btf: Btf) -> tuple[Map | None, Mapping[str, int]]:
    """Make the map that holds the kernel's configuration, if an object has __kconfig variables.

    A guest has no such configuration: LINUX_KERNEL_VERSION gets the version whose helpers there are
    here, LINUX_HAS_BPF_COOKIE 1, and all else 0.

    Args:
        file: the object, which has the byte order.
        btf: the object's types.

    Returns:
        (the map, name of a variable -> its offset in the map); (None, {}): nothing is asked for.
    """
    numbers = [
        number
        for t in btf.types
        if t.kind == DATASEC and t.name == ".kconfig"
        for number, *_ in t.items
    ]
    places = {btf.types[number].name: 8 * n for n, number in enumerate(numbers)}
    if not places:
        return None, {}
    m = create(
        Spec(
            type=MapType.ARRAY,
            name=".kconfig",
            key_size=4,
            value_size=8 * len(places),
            max_entries=1,
            readonly=True,
            order=file.order,
        )
    )
    for name, at in places.items():
        m.block.view[at : at + 8] = _CONFIGURED.get(name, 0).to_bytes(8, file.order)
    return m, places


def _kernel_functions(btf: Btf) -> frozenset[str]:
    """Return the names of functions that an object declares as a kernel's (__ksym).

    Args:
        btf: the object's types.
    """
    return frozenset(
        btf.types[number].name
        for t in btf.types
        if t.kind == DATASEC and t.name == ".ksyms"
        for number, *_ in t.items
    )


def _types(file: ObjectFile) -> tuple[Btf, Ext]:
    """Return (types, source lines and relocations by type) of an object; empty ones without BTF."""
    sections = [file.section(name) for name in (".BTF", ".BTF.ext")]
    btf, ext = (s.data if s else b"" for s in sections)
    types = Btf(btf, file.order)
    return types, Ext(ext if btf else b"", types)


def _license(file: ObjectFile) -> str:
    """Return the license that an object names; "": none."""
    section = file.section("license")
    return section.data.partition(b"\0")[0].decode("utf-8", "replace") if section else ""


def _entries(obj: _Object) -> list[ObjectSymbol]:
    """Return the symbols of the entry functions in the object's order: those outside of .text.

    Args:
        obj: the object.

    Raises:
        ProgramError: there is none, or one is static.
    """
    entries = [s for s in obj.functions.values() if obj.file.sections[s.section].name != ".text"]
    if not entries:
        raise ProgramError(
            "has no program",
            program=obj.file.name,
            hint='put functions into sections: SEC("kprobe/function")',
        )
    for s in entries:
        if s.bind == "LOCAL":
            raise ProgramError(
                f"program {s.name} is static",
                program=obj.file.name,
                section=obj.file.sections[s.section].name,
                hint="drop the word: programs are found by name",
            )
    return sorted(entries, key=lambda s: (s.section, s.value))


def _variables(obj: _Object, btf: Btf, values: Values) -> Variables:
    """Return the object's global variables, as a mapping that reads and writes them.

    Args:
        obj: the object.
        btf: the object's types.
        values: codecs of these types.

    Raises:
        ValueError: a variable is not in its section.
    """
    types = btf.variables()
    known = {}
    for s in obj.file.symbols:
        number = obj.index.get((s.section, -1))
        if number is None or s.type != "OBJECT" or s.name not in types:
            continue
        m = obj.maps[number]
        size = btf.size(types[s.name])
        if s.value + size > m.value_size:
            raise ValueError(f"variable {s.name} is not in its section")
        pointer = btf.plain(types[s.name]).kind == PTR
        known[s.name] = GlobalVariable(m, s.value, size, values.codec(types[s.name]), pointer)
    return Variables(known)


@frozen(eq=False)
class _Linker:
    """Links one program: its entry function, and behind it each function that is called.

    Attributes:
        obj: the object.
        entry: symbol of the entry function.
        code: the instructions so far; an index is a slot.
        origins: slot -> (section, offset) in the object; section -1: it is not the object's.
        starts: (section, offset) of a function -> its first slot.
        lines: slot -> source line from there on.
        missing: slot of a call of something that does not exist here -> why.
        made: first slot of a function that was assembled here -> its name.
    """

    obj: _Object
    entry: ObjectSymbol
    code: list[Instruction] = field(factory=list)
    origins: list[tuple[int, int]] = field(factory=list)  #: slot -> (section, offset) in the object
    starts: dict[tuple[int, int], int] = field(factory=dict)  #: function -> its first slot
    lines: dict[int, CodeLine] = field(factory=dict)
    missing: dict[int, str] = field(factory=dict)  #: slot of a call of what there is not -> why
    #: first slot of functions that are not the object's -> name
    made: dict[int, str] = field(factory=dict)

    def link(self) -> Code:
        """Put the program together, and return it.

        Raises:
            ProgramError: something that it refers to is not there.
            ValueError: a function is empty, or not in its section.
        """
        self._append(self.entry)
        done = 0
        while done < len(self.code):
            done = self._resolve(done)
        self._call_back()
        functions = {
            slot: self.obj.functions[where].name for where, slot in self.starts.items()
        } | self.made
        names = frozenset(
            self.obj.named[where] for where in self.origins if where in self.obj.named
        )
        taken = next(
            (self.obj.foreign[name] for name in functions.values() if name in self.obj.foreign),
            KernelsContext(""),
        )
        return evolve(
            self._so_far(),
            functions=functions,
            names=names,
            foreign=taken.name,
            members=taken.members,
            relocations=dict(self._relocations()),
            missing=self.missing,
            unknown=frozenset(self.missing),
            numbers_read=self.obj.file.section(_HEADER) is not None,
        )

    def _relocations(self) -> Iterator[tuple[int, TypeRelocation]]:
        """Yield (slot, relocation by type) for each that must be done with the guest's types.

        Those of a kernel's structures of registers are left out: they stay as they were compiled.
        """
        for pc, (section, offset) in enumerate(self.origins):
            name = self.obj.file.sections[section].name if section >= 0 else ""
            found = self.obj.ext.relocations.get(name, {}).get(offset)
            if found is not None and found.type.removeprefix("struct ") not in KERNELS:
                yield pc, found

    def _so_far(self) -> Code:
        """Return the program with the instructions that are linked by now.

        link() takes the result at the end, and adds what is missing: the names of functions,
        relocations, calls of what does not exist. Before that an error takes the result, to show
        the instruction that is wrong.
        """
        obj = self.obj
        section = obj.file.sections[self.entry.section].name
        return Code(
            self.entry.name,
            tuple(self.code),
            obj.maps,
            section,
            {0: self.entry.name},
            self.lines,
            license=obj.license,
            order=obj.file.order,
        )

    def _append(self, function: ObjectSymbol) -> int:
        """Append a function of the object to the program, and return its first slot.

        Its instructions are not linked yet; their places and source lines are noted. Where the
        object has libbpf's map of markers' arguments, libbpf's functions that read it are replaced
        by this library's (callbacks.REPLACED).

        Args:
            function: the function's symbol.

        Raises:
            ValueError: the function is empty, or not in its section.
        """
        obj, section = self.obj, self.obj.file.sections[function.section]
        behind = (
            value for s, value in obj.functions if s == function.section and value > function.value
        )
        end = (
            function.value + function.size
            if function.size
            else min(behind, default=len(section.data))
        )
        if function.value % 8 or end > len(section.data):
            raise ValueError(f"function {function.name} is not in its section")
        start = self.starts[function.section, function.value] = len(self.code)
        new = decode(section.data[function.value : end], obj.file.order)
        if not new:
            raise ValueError(f"function {function.name} is empty")
        if function.name in callbacks.REPLACED and any(
            m.name == callbacks.SPECIFIED for m in obj.maps
        ):
            new = callbacks.REPLACED[function.name]().finish()[0]
            self.code.extend(new)
            self.origins.extend([(-1, 0)] * len(new))
            return start
        self.code.extend(new)
        self.origins.extend((function.section, at) for at in range(function.value, end, 8))
        for at, line in obj.ext.lines.get(section.name, {}).items():
            if function.value <= at < end:
                self.lines[start + (at - function.value) // 8] = line
        return start

    def _resolve(self, pc: int) -> int:
        """Link one instruction: put in the map, variable or function that its relocation names.

        A function that is new is appended. A call of something that is not there is noted in
        `missing`.

        Args:
            pc: slot of the instruction, which is replaced in `code`.

        Returns:
            The slot of the next instruction.

        Raises:
            ProgramError: what it refers to is not defined.
        """
        i, (section, offset) = self.code[pc], self.origins[pc]
        relocation = self.obj.file.relocations.get(section, {}).get(offset)
        if i.wide and section >= 0:
            if relocation is not None:
                self.code[pc] = self._load(pc, i, relocation)
                self.code[pc + 1] = Instruction(0, imm=self.code[pc].high)
            return pc + 2
        if section < 0:  # a function that is not the object's: it is complete
            return pc + (2 if i.wide else 1)
        if (
            relocation is not None
            and not relocation.symbol.section
            and relocation.type == _CALL_TYPE
        ):
            self.code[pc] = self._kernel_function(pc, relocation.symbol)
        elif i.is_local_call or (relocation is not None and relocation.type == _CALL_TYPE):
            self.code[pc] = evolve(i, src=isa.LOCAL, imm=self._function(pc, i, relocation) - pc - 1)
        elif i.is_helper_call and i.imm in _TIMERS:
            raise self._error(
                f"calls bpf_timer_{_TIMERS[i.imm]}(): nothing runs a program later here",
                pc,
                "attach to a function that is called often, and compare bpf_ktime_get_ns()",
            )
        elif i.is_helper_call and i.imm not in HELPERS and i.imm not in callbacks.TAKEN_IN:
            self.missing[pc] = f"calls helper {i.imm}, which there is not here"
            self.code[pc] = evolve(i, imm=isa.MISSING)
        elif relocation is not None:
            raise self._error(f"has a relocation of type {relocation.type}", pc)
        return pc + 1

    def _load(self, pc: int, i: Instruction, relocation: ObjectRelocation) -> Instruction:
        """Return an LDDW that loads what its relocation names: a map, a variable or a function.

        A function that is new is appended to the program. A weak symbol without a definition
        becomes a number: 1 if there is such a helper or function here, else 0.

        Args:
            pc: slot of the LDDW.
            i: the LDDW as the compiler made it.
            relocation: names what it loads.

        Raises:
            ProgramError: that is not defined, or is a map that is not supported here.
        """
        s, obj = relocation.symbol, self.obj
        if relocation.type != _LDDW_TYPE:
            raise self._error(f"has a relocation of type {relocation.type}", pc)
        if not s.section:
            if s.name in obj.config:
                return evolve(i, src=isa.MAP_VALUE, imm=obj.index[-1, 1], high=obj.config[s.name])
            if s.bind == "WEAK":  # it is asked whether it is there
                known = s.name in HELPED or s.name in callbacks.FUNCTIONS
                return evolve(i, src=isa.VALUE64, imm=int(known), high=0)
            raise self._error(f"{s.name} is not defined", pc, _UNDEFINED)
        at = s.value + (i.imm & isa.U32)
        if (s.section, -1) in obj.index:
            return evolve(
                i, src=isa.MAP_VALUE, imm=obj.index[s.section, -1], high=isa.signed(at, 32)
            )
        if (s.section, at) in obj.index:
            error = obj.absent.get(obj.index[s.section, at])
            if error is not None:
                obj.refused.add(obj.index[s.section, at])
                raise self._error(error.reason, pc, error.plain.partition("; ")[2])
            return evolve(i, src=isa.MAP, imm=obj.index[s.section, at], high=0)
        if obj.file.sections[s.section].executable:
            return evolve(i, src=isa.CODE, imm=self._place((s.section, at), pc) - pc - 1, high=0)
        name = s.name or obj.file.sections[s.section].name
        raise self._error(f"loads the address of {name}, which is neither a map nor a variable", pc)

    def _function(self, pc: int, i: Instruction, relocation: ObjectRelocation | None) -> int:
        """Return the first slot of the function that a call means, which is appended if it is new.

        Args:
            pc: slot of the call.
            i: the call.
            relocation: names the function; None: the call's distance leads to it.
        """
        section, offset = self.origins[pc]
        if relocation is None:
            return self._place((section, offset + 8 * (i.imm + 1)), pc)
        s = relocation.symbol
        return self._place((s.section, s.value + 8 * (i.imm + 1)), pc)

    def _kernel_function(self, pc: int, s: ObjectSymbol) -> Instruction:
        """Return an instruction to replace the call of a function that the object does not define.

        Some of a kernel's functions are helpers here, others are assembled and appended to the
        program. For another function that is weak or the kernel's, it is a call that the verifier
        refuses where a path leads to it.

        Args:
            pc: slot of the call.
            s: the function's symbol.

        Raises:
            ProgramError: there is no such function.
        """
        if s.name in HELPED:
            return Instruction(isa.CALL | isa.JMP, imm=HELPED[s.name])
        if s.name not in callbacks.FUNCTIONS:
            if s.bind == "WEAK" or s.name in self.obj.kernels:
                self.missing[pc] = f"calls {s.name}(), a function of a kernel's"
                return Instruction(isa.CALL | isa.JMP, imm=isa.MISSING)
            raise self._error(f"calls {s.name}, which is not defined", pc, _UNDEFINED)
        start = next((slot for slot, name in self.made.items() if name == s.name), None)
        if start is None:
            start = self._add(s.name, callbacks.FUNCTIONS[s.name]().finish()[0])
        return Instruction(isa.CALL | isa.JMP, src=isa.LOCAL, imm=start - pc - 1)

    def _add(self, name: str, instructions: Sequence[Instruction]) -> int:
        """Append a function that was assembled here to the program.

        Args:
            name: the function's name.
            instructions: its instructions, which need no linking.

        Returns:
            The function's first slot.
        """
        start = len(self.code)
        self.made[start] = name
        self.code.extend(instructions)
        self.origins.extend([(-1, 0)] * len(instructions))
        return start

    def _call_back(self) -> None:
        """Replace calls of helpers that take a callback, such as bpf_loop().

        Each becomes a call of a function, appended to the program, that loops and calls the
        callback. LDDWs of a function's address then load 0.

        Raises:
            ProgramError: which function, or which map, a call takes is not known, or there is no
                loop for such a map.
        """
        starts = sorted([*self.starts.values(), *self.made])
        loops: dict[tuple[int, int, int], int] = {}
        for start, end in zip(starts, [*starts[1:], len(self.code)], strict=True):
            calls = [
                pc
                for pc, i in isa.steps(self.code)
                if start <= pc < end and i.is_helper_call and i.imm in callbacks.TAKEN_IN
            ]
            known = callbacks.registers_at(self.code, start, end, {}) if calls else {}
            for pc in calls:
                to = self._loop(pc, known.get(pc, {}), loops)
                self.code[pc] = Instruction(isa.CALL | isa.JMP, src=isa.LOCAL, imm=to - pc - 1)
        for pc, i in isa.steps(tuple(self.code)):
            if i.wide and i.src == isa.CODE:  # whom it calls back is known
                self.code[pc] = evolve(i, src=isa.VALUE64, imm=0, high=0)
                self.code[pc + 1] = Instruction(0)

    def _loop(
        self, pc: int, known: Mapping[int, callbacks.Known], loops: dict[tuple[int, int, int], int]
    ) -> int:
        """Return the first slot of the loop that a call of a helper with a callback becomes.

        Args:
            pc: slot of the call.
            known: number of a register -> what it holds for certain at the call.
            loops: (helper's number, callback's first slot, map's number or -1) -> first slot of the
                loop that was appended for them; filled.

        Raises:
            ProgramError: which function is called back is not known, or no loop goes over this map.
        """
        number = self.code[pc].imm
        name = callbacks.name_of(number)
        function = known.get(callbacks.TAKEN_IN[number])
        if function is None or function.kind != "function":
            raise self._error(
                f"which function {name}() calls is not known where it is called",
                pc,
                "give it the function's name",
            )
        of = -1
        if number in callbacks.OF_MAPS:
            found = known.get(1)
            if found is None or found.kind != "map":
                raise self._error(
                    f"which map {name}() goes through is not known where it is called",
                    pc,
                    "give it the map's address",
                )
            of = found.number
        key = number, function.number, of
        if key not in loops:
            made = callbacks.made(number, of, self.obj.maps[of] if of >= 0 else None)
            if made is None:
                raise self._error(
                    f"{name}() does not go through a {self.obj.maps[of].type.name.lower()}",
                    pc,
                    callbacks.OF_MAPS[number],
                )
            start = len(self.code)
            code = [
                evolve(i, imm=function.number - start - at - 1) if i.is_local_call else i
                for at, i in enumerate(made.finish()[0])
            ]
            loops[key] = self._add(name, code)
        return loops[key]

    def _place(self, where: tuple[int, int], pc: int) -> int:
        """Return the first slot of a function of the object's, which is appended if it is new.

        Args:
            where: (section, offset) of the function.
            pc: slot that refers to it, for the error.

        Raises:
            ProgramError: no function is there.
        """
        if where in self.starts:
            return self.starts[where]
        function = self.obj.functions.get(where)
        if function is None:
            raise self._error("calls what is no function", pc)
        return self._append(function)

    def _error(self, reason: str, pc: int, hint: str = "") -> ProgramError:
        """Return an error about the instruction at a slot; the caller raises it.

        Args:
            reason: what is wrong, as a clause.
            pc: the slot.
            hint: what to do; "": nothing is known.
        """
        return self._so_far().error(reason, pc, hint)
