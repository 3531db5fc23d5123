"""Imports of images: stubs that lead to a module loaded later, to a Python function, or to what an
ifunc's resolver chooses.
"""

from __future__ import annotations

from collections.abc import Callable

from ...regs import Regs
from ...symbols import Symbol
from .cpu import UnicornCpu
from .functions import Functions

LEAD = 8  # bytes before an import's trap

#: arguments of a resolver: no capabilities, and no function that tells them (RISC-V's second
#: argument)
CAPABILITIES = (0, 0, 0)


class Stubs:
    """Places in guest memory, full of traps, that stand for functions. An import's begins with a
    jump over the first bytes: an instruction that can be probed.

    Attributes:
        imports: address where the guest traps -> the import that it has called.
        ifuncs: stub -> resolver of the function that it stands for.
        bound: import -> Python function in its place.
    """

    def __init__(self, cpu: UnicornCpu, functions: Functions, call: Callable[..., int]) -> None:
        """Prepare; there are no stubs yet.

        Args:
            call: calls guest code, for resolvers: (address, arguments) -> result.
        """
        self._cpu = cpu
        self._functions = functions
        self._call = call
        self.imports: dict[int, str] = {}
        self.ifuncs: dict[int, int] = {}
        self.bound: dict[str, Callable[[Regs], int | None]] = {}
        self._resolved: dict[int, int] = {}  # resolver -> the function it chose

    def stand_for(self, stub: int, name: str) -> None:
        """Make a stub stand for an import.

        Args:
            stub: its address.
            name: of the import.
        """
        arch = self._cpu.arch
        mode = arch.linkage.mode if arch.linkage is not None else 0
        trap = stub
        jump = arch.jump_in(mode)
        if jump is not None and jump.size <= LEAD:
            trap = stub + LEAD
            self._cpu.memory.patch(stub, jump.encode(stub, trap))
        self._cpu.memory.patch(trap, arch.end_bytes(mode))
        self.imports[trap] = name

    def serve(self, stub: int) -> bool:
        """Serve a trap at a stub: go where the import, or the chosen function, is. Return False
        where there is none.
        """
        if stub in self.ifuncs:
            self._cpu.write_pc(self.choose(self.ifuncs[stub]))
            return True
        name = self.imports.get(stub)
        if name is None:
            return False
        if name in self.bound:
            self._call_python(stub, self.bound[name])
            return True
        symbol = self._functions.symbols.find(name)
        if symbol is None:
            return False
        pointer = self.resolved(symbol)
        self._functions.introduce(pointer)
        self._cpu.write_pc(self._functions.target(pointer))
        return True

    def resolved(self, symbol: Symbol) -> int:
        """Return a function's address as pointers have it."""
        value = symbol.address | symbol.mode
        return self.choose(value) if symbol.kind == "ifunc" else value

    def choose(self, resolver: int) -> int:
        """Return the function that an ifunc's resolver chooses; it is called once."""
        if resolver not in self._resolved:
            self._resolved[resolver] = self._call(resolver, *CAPABILITIES)
        return self._resolved[resolver]

    def _call_python(self, stub: int, function: Callable[[Regs], int | None]) -> None:
        """Call a Python function in an import's place, and return its result to the guest's caller.
        """
        regs = self._cpu.regs
        linkage = self._cpu.arch.linkage
        abi = self._cpu.arch.abi
        assert linkage is not None and abi is not None
        regs.at(stub)
        back = linkage.get(regs)
        result = function(regs)
        if result is not None:
            regs.return_value = int(result)
        if linkage.pushed:
            regs.sp += linkage.pushed
        self._cpu.write_pc(back if regs.target is None else regs.target)
