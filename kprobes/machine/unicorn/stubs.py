"""Imports of images: stubs that lead to a module loaded later, to a Python function, or to what an
ifunc's resolver chooses.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from ...errors import GuestFault, OutOfReach
from ...regs import Regs
from ...symbols import Symbol
from .cpu import UnicornCpu
from .functions import Functions

LEAD = 8  # bytes before an import's trap
#: Calls of a stub after which a jump replaces its trap. Writing the jump costs as much as a few
#: calls, and restoring a snapshot takes it out again.
OFTEN = 16

#: arguments of a resolver: no capabilities, and no function that tells them (RISC-V's second
#: argument)
CAPABILITIES = (0, 0, 0)


class Stubs:
    """Places in guest memory, full of traps, that stand for functions. An import's begins with a
    jump over the first bytes: an instruction that can be probed.

    Where a stub is called often, or a snapshot is taken, a jump to the function takes the place of
    its trap. Whether one is there now, only guest memory says: snapshots take it back and forth.

    Attributes:
        imports: address where the guest traps -> the import that it has called.
        ifuncs: stub -> resolver of the function that it stands for.
        bound: import -> Python function in its place.
    """

    def __init__(self, cpu: UnicornCpu, functions: Functions, call: Callable[..., int]) -> None:
        """Prepare; there are no stubs yet.

        Args:
            cpu: whose guest has the stubs.
            functions: finds and enters functions.
            call: calls guest code, for resolvers: (address, arguments) -> result.
        """
        self._cpu = cpu
        self._functions = functions
        self._call = call
        self.imports: dict[int, str] = {}
        self.ifuncs: dict[int, int] = {}
        self.bound: dict[str, Callable[[Regs], int | None]] = {}
        self._resolved: dict[int, int] = {}  # resolver -> the function it chose
        self._served: dict[int, int] = {}  # trap -> calls since it has last got a jump
        #: trap -> the function that a jump has led to from there, and the jump
        self._jumps: dict[int, tuple[int, bytes]] = {}
        #: trap -> the jump that must not be there any more; a restored snapshot may bring it back
        self.stale: dict[int, bytes] = {}

    def stand_for(self, stub: int, name: str) -> None:
        """Write a stub that stands for an import: a jump to its trap, and the trap, which is noted
        in `imports`. Where the architecture has no jump of at most LEAD bytes, the stub is the trap
        alone.

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
        """Serve a trap at a stub: send the guest to what the stub stands for.

        That is the function that an ifunc's resolver chooses (the resolver may run in the guest), a
        Python function, which is called, or a loaded symbol. pc is set; calls of guest functions
        are counted, and after OFTEN of them a jump takes the trap's place.

        Args:
            stub: address where the guest has trapped.

        Returns:
            False where no stub is there, or its import is bound to nothing.

        Raises:
            BaseException: the Python function, or the call of the resolver, has raised it.
        """
        if stub in self.ifuncs:
            pointer = self.choose(self.ifuncs[stub])
            self._functions.introduce(pointer)
            self._cpu.write_pc(self._functions.target(pointer))
            self._count(stub, pointer)
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
        self._count(stub, pointer)
        return True

    # --- jumps in place of traps

    def _count(self, trap: int, pointer: int) -> None:
        """Count a call of a stub; at each 16th (OFTEN), have a jump to the function take the place
        of its trap, if that is possible.

        Args:
            trap: address of the trap in the stub.
            pointer: address of the function, as pointers have it.
        """
        calls = self._served[trap] = self._served.get(trap, 0) + 1
        if calls == OFTEN:
            self._served[trap] = 0
            self._lay_jump(trap, pointer)

    def lay_jumps(self) -> None:
        """Replace the trap of each stub by a jump, where that is possible (_lay_jump()) and its
        function is known without running guest code. Stubs of imports that a Python function serves
        keep their traps.

        Called before a snapshot is taken.
        """
        for trap, name in self.imports.items():
            symbol = self._functions.symbols.find(name) if name not in self.bound else None
            if symbol is not None:
                value = symbol.address | symbol.mode
                pointer = self._resolved.get(value) if symbol.kind == "ifunc" else value
                if pointer is not None:
                    self._lay_jump(trap, pointer)
        for trap, resolver in self.ifuncs.items():
            if resolver in self._resolved:
                self._lay_jump(trap, self._resolved[resolver])

    def _lay_jump(self, trap: int, pointer: int) -> None:
        """Replace the trap of a stub by a jump to a function, if that is possible, and note the
        jump for trap_again().

        The trap stays where entering the function takes more than a jump (a register to set,
        another mode), where no jump reaches the function, or where the stub's place holds no trap.

        Args:
            trap: address of the trap in the stub.
            pointer: address of the function, as pointers have it.
        """
        arch, memory = self._cpu.arch, self._cpu.memory
        mode = arch.linkage.mode if arch.linkage is not None else 0
        jump = arch.jump_in(mode)
        enters = arch.abi is not None and arch.abi.enter is not None
        if jump is None or enters or self._functions.target(pointer) != pointer:
            return
        if pointer & arch.pointers.mode_bits != mode:
            return
        try:
            code = jump.encode(trap, pointer & ~arch.pointers.mode_bits)
            if memory.read(trap, len(code)) == self._trap_bytes(len(code)):
                memory.patch(trap, code)
                self._jumps[trap] = pointer, code
                self.stale.pop(trap, None)
        except (OutOfReach, GuestFault):
            return

    def _trap_bytes(self, size: int) -> bytes:
        """Return `size` bytes of trap instructions, as stubs are filled with."""
        arch = self._cpu.arch
        trap = arch.end_bytes(arch.linkage.mode if arch.linkage is not None else 0)
        return (trap * (size // len(trap) + 1))[:size]

    def trap_again(self, stale: Callable[[int, int], bool]) -> None:
        """Give stubs whose jump has become wrong their traps back. Such a jump is noted in `stale`,
        since a restored snapshot may bring it back.

        Args:
            stale: (address of the trap, function that the jump leads to) -> True where the jump
                must not be there any more.
        """
        for trap, (pointer, code) in list(self._jumps.items()):
            if stale(trap, pointer):
                del self._jumps[trap]
                self.stale[trap] = code
        self.after_restore()

    def after_restore(self) -> None:
        """Write traps over those jumps in `stale` that are in memory.

        `stale` has the jumps that have become wrong, for instance since a Python function serves
        the import now. A restored snapshot brings back such a jump, if the jump was there when the
        snapshot was taken. Stubs whose memory is unmapped are left out.
        """
        memory = self._cpu.memory
        for trap, code in self.stale.items():
            with suppress(GuestFault):  # its module is gone as well
                if memory.read(trap, len(code)) == code:
                    memory.patch(trap, self._trap_bytes(len(code)))

    def bind(self, name: str, function: Callable[[Regs], int | None]) -> None:
        """Serve an import by a Python function from now on; jumps of its stubs become traps again.

        Args:
            name: of the import.
            function: gets Regs as at function entry; its result goes to the caller, None leaves the
                return register as it is.
        """
        self.bound[name] = function
        self.trap_again(lambda trap, pointer: self.imports.get(trap) == name)

    def resolved(self, symbol: Symbol) -> int:
        """Return a function's address as pointers have it, mode bits included.

        For an ifunc this is the function that its resolver chooses. The resolver runs in the guest
        the first time that its ifunc is asked for; later its choice is known.

        Args:
            symbol: of the function or ifunc.
        """
        value = symbol.address | symbol.mode
        return self.choose(value) if symbol.kind == "ifunc" else value

    def choose(self, resolver: int) -> int:
        """Return the function that an ifunc's resolver chooses, as pointers have it.

        The resolver is called in the guest the first time; its choice is remembered. What that call
        raises is raised.

        Args:
            resolver: its address, as pointers have it.
        """
        if resolver not in self._resolved:
            self._resolved[resolver] = self._call(resolver, *CAPABILITIES)
        return self._resolved[resolver]

    def _call_python(self, stub: int, function: Callable[[Regs], int | None]) -> None:
        """Call a Python function in an import's place, and return its result to the guest's caller.

        pc goes to the return address, or where the function has sent the guest. A result of None
        leaves the return register as it is. A pushed return address is taken from the stack. What
        the function raises is raised.

        Args:
            stub: address where the guest has trapped.
            function: gets Regs as at function entry.
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
