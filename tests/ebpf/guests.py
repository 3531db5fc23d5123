"""A guest of every architecture with a function of one argument."""

from __future__ import annotations

from arches import integer, programs_of

from kprobes import UnicornMachine

#: f(x) = x + 1 for those that have no compiled programs: (address, code)
BY_HAND = {
    "mips32r6": (0x10000, "24820001 03e00009 00000000"),  # addiu v0, a0, 1; jr ra; nop
    "mips64r6": (0x10000, "64820001 03e00009 00000000"),  # daddiu v0, a0, 1; jr ra; nop
    "tricore": (0x80000000, "0242 c212 0090"),  # mov d2, d4; add d2, 1; ret
}
SEED = 3


class Guest:
    """A machine with a function of one integer argument: call() gives its result, `want` is what it should be."""

    def __init__(self, arch):
        self.arch = arch
        if arch in BY_HAND:
            base, code = BY_HAND[arch]
            raw = bytes.fromhex(code)
            self.machine = UnicornMachine.from_code(raw, arch=arch, base=base, symbols={"f": (base, len(raw))})
            self.name, self.value = "f", SEED
        else:
            self.machine = UnicornMachine.load(programs_of(arch)[0])
            self.name, self.value = "test_arith32", integer(self.machine.arch, SEED)
        self.want = self.call()

    def call(self):
        return self.machine.call(self.name, self.value)
