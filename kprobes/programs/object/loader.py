"""From an object to programs: each entry function with all that it calls, its maps and variables
put in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import evolve, field, frozen

from ...errors import ProgramError
from .. import isa
from ..code import Code, CodeLine
from ..isa import Instruction, decode
from ..maps import Map
from .btf import Btf, Ext
from .elf import ObjectFile, ObjectRelocation, ObjectSymbol, damage_is_error
from .maps import data_map, defined, is_data
from .named import named
from .registers import foreign
from .values import Types, Values
from .variables import GlobalVariable, Variables

_LDDW_TYPE: Final = 1
_CALL_TYPE: Final = 10
_UNDEFINED: Final = "define it in this object: nothing is linked in from elsewhere"


@frozen(eq=False)
class Loaded:
    """The contents of an object.

    Attributes:
        codes: name -> program, in the object's order.
        maps: name -> map, data sections by their names.
        variables: global variables.
    """

    codes: Mapping[str, Code]
    maps: Mapping[str, Map]
    variables: Variables
    types: Types


@frozen(eq=False)
class _Object:
    """An object while it is loaded.

    index: (section, offset) of maps and (section, -1) of data sections -> number of the map.
    """

    file: ObjectFile
    ext: Ext
    maps: tuple[Map, ...]
    index: Mapping[tuple[int, int], int]
    functions: Mapping[tuple[int, int], ObjectSymbol]  #: (section, offset) -> function
    license: str = ""
    named: Mapping[tuple[int, int], str] = field(factory=dict)  #: (section, offset) -> register
    foreign: Mapping[str, str] = field(factory=dict)  #: function -> what it takes its context for


def load(data: bytes, name: str, cpus: int = 1) -> Loaded:
    """All programs of an object. ProgramError: none, damaged, or something in it that there is not
    here.
    """
    file = ObjectFile(data, name)
    with damage_is_error(name):
        btf, ext = _types(file)
        values = Values(btf)
        maps = defined(file, btf, values, cpus)
        maps.update({(s.index, -1): data_map(s, file, btf) for s in file.sections if is_data(s)})
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
            foreign(btf),
        )
        codes = {s.name: _Linker(obj, s).link() for s in _entries(obj)}
        return Loaded(
            codes, {m.name: m for m in obj.maps}, _variables(obj, btf, values), Types(values)
        )


def _types(file: ObjectFile) -> tuple[Btf, Ext]:
    sections = [file.section(name) for name in (".BTF", ".BTF.ext")]
    btf, ext = (s.data if s else b"" for s in sections)
    types = Btf(btf, file.order)
    return types, Ext(ext if btf else b"", types)


def _license(file: ObjectFile) -> str:
    section = file.section("license")
    return section.data.partition(b"\0")[0].decode("utf-8", "replace") if section else ""


def _entries(obj: _Object) -> list[ObjectSymbol]:
    """The entry functions: those in sections of their own."""
    entries = [s for s in obj.functions.values() if obj.file.sections[s.section].name != ".text"]
    if not entries:
        raise ProgramError("has no program", program=obj.file.name,
                           hint='put functions into sections: SEC("kprobe/function")')
    for s in entries:
        if s.bind == "LOCAL":
            raise ProgramError(f"program {s.name} is static", program=obj.file.name,
                               section=obj.file.sections[s.section].name,
                               hint="drop the word: programs are found by name")
    if obj.ext.relocations:
        types = ", ".join(sorted(set(obj.ext.relocations)))
        raise ProgramError(
            f"has relocations by type (of {types})",
            program=obj.file.name,
            hint="types of the guest are not known: drop preserve_access_index, __builtin_preserve_*",
        )
    return sorted(entries, key=lambda s: (s.section, s.value))


def _variables(obj: _Object, btf: Btf, values: Values) -> Variables:
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
        known[s.name] = GlobalVariable(m, s.value, size, values.codec(types[s.name]))
    return Variables(known)


@frozen(eq=False)
class _Linker:
    """Puts one program together."""

    obj: _Object
    entry: ObjectSymbol
    code: list[Instruction] = field(factory=list)
    origins: list[tuple[int, int]] = field(factory=list)  #: slot -> (section, offset) in the object
    starts: dict[tuple[int, int], int] = field(factory=dict)  #: function -> its first slot
    lines: dict[int, CodeLine] = field(factory=dict)

    def link(self) -> Code:
        self._append(self.entry)
        done = 0
        while done < len(self.code):
            done = self._resolve(done)
        functions = {slot: self.obj.functions[where].name for where, slot in self.starts.items()}
        names = frozenset(
            self.obj.named[where] for where in self.origins if where in self.obj.named
        )
        taken = next(
            (self.obj.foreign[name] for name in functions.values() if name in self.obj.foreign), ""
        )
        return evolve(self._so_far(), functions=functions, names=names, foreign=taken)

    def _so_far(self) -> Code:
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
        """Put a function behind what is there; its first slot."""
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
        new = decode(section.data[function.value:end], obj.file.order)
        if not new:
            raise ValueError(f"function {function.name} is empty")
        self.code.extend(new)
        self.origins.extend((function.section, at) for at in range(function.value, end, 8))
        for at, line in obj.ext.lines.get(section.name, {}).items():
            if function.value <= at < end:
                self.lines[start + (at - function.value) // 8] = line
        return start

    def _resolve(self, pc: int) -> int:
        """Put in what one instruction refers to; the slot of the next."""
        i, (section, offset) = self.code[pc], self.origins[pc]
        relocation = self.obj.file.relocations.get(section, {}).get(offset)
        if i.wide:
            if relocation is not None:
                self.code[pc] = self._load(pc, i, relocation)
                self.code[pc + 1] = Instruction(0, imm=self.code[pc].high)
            return pc + 2
        if i.is_local_call or (relocation is not None and relocation.type == _CALL_TYPE):
            self.code[pc] = evolve(i, src=isa.LOCAL, imm=self._function(pc, i, relocation) - pc - 1)
        elif relocation is not None:
            raise self._error(f"has a relocation of type {relocation.type}", pc)
        return pc + 1

    def _load(self, pc: int, i: Instruction, relocation: ObjectRelocation) -> Instruction:
        s, obj = relocation.symbol, self.obj
        if relocation.type != _LDDW_TYPE:
            raise self._error(f"has a relocation of type {relocation.type}", pc)
        if not s.section:
            if s.bind == "WEAK":
                return evolve(i, src=isa.VALUE64, imm=0, high=0)
            raise self._error(f"{s.name} is not defined", pc, _UNDEFINED)
        at = s.value + (i.imm & isa.U32)
        if (s.section, -1) in obj.index:
            return evolve(
                i, src=isa.MAP_VALUE, imm=obj.index[s.section, -1], high=isa.signed(at, 32)
            )
        if (s.section, at) in obj.index:
            return evolve(i, src=isa.MAP, imm=obj.index[s.section, at], high=0)
        if obj.file.sections[s.section].executable:
            return evolve(i, src=isa.CODE, imm=self._place((s.section, at), pc) - pc - 1, high=0)
        name = s.name or obj.file.sections[s.section].name
        raise self._error(f"loads the address of {name}, which is neither a map nor a variable", pc)

    def _function(self, pc: int, i: Instruction, relocation: ObjectRelocation | None) -> int:
        """First slot of the function that a call means."""
        section, offset = self.origins[pc]
        if relocation is None:
            return self._place((section, offset + 8 * (i.imm + 1)), pc)
        s = relocation.symbol
        if not s.section:
            raise self._error(f"calls {s.name}, which is not defined", pc, _UNDEFINED)
        return self._place((s.section, s.value + 8 * (i.imm + 1)), pc)

    def _place(self, where: tuple[int, int], pc: int) -> int:
        if where in self.starts:
            return self.starts[where]
        function = self.obj.functions.get(where)
        if function is None:
            raise self._error("calls what is no function", pc)
        return self._append(function)

    def _error(self, reason: str, pc: int, hint: str = "") -> ProgramError:
        return self._so_far().error(reason, pc, hint)
