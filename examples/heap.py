"""A heap checker: what was allocated and never freed, and what was freed twice, with the lines of the source.

    python examples/heap.py

notes.arm64 imports malloc() and free(). Two functions here serve them; the checker itself knows nothing of these, and
would be the same with a C library's: it is a return probe and a probe.
"""

from pathlib import Path

from kprobes import Kprobe, Kprobes, Kretprobe, KretprobeInstance, Regs, UnicornMachine

HERE = Path(__file__).resolve().parent


class Heap:
    """Blocks that are alive, by their address; and what went wrong."""

    def __init__(self, k: Kprobes) -> None:
        self.k, self.alive, self.freed, self.wrong = k, dict[int, tuple[int, str]](), dict[int, str](), list[str]()
        k.register(Kretprobe(symbol_name="malloc@plt", entry_handler=self.asked, handler=self.given))
        k.register(Kprobe(symbol_name="free@plt", pre_handler=self.freeing))

    def line(self, regs: Regs) -> str:
        """Where in the source the innermost frame of the library stands that called."""
        machine = self.k.machine
        caller = self.k.stack_trace(regs)[1]
        return f"{machine.symbols.describe(caller)} ({machine.debug.line(caller - 1)})"

    def asked(self, ri: KretprobeInstance, regs: Regs) -> None:
        ri.data.update(size=regs.arg(0), line=self.line(regs))

    def given(self, ri: KretprobeInstance, regs: Regs) -> None:
        if regs.return_value:
            self.alive[regs.return_value] = ri.data["size"], ri.data["line"]

    def freeing(self, p: object, regs: Regs) -> None:
        block, line = regs.arg(0), self.line(regs)
        if self.alive.pop(block, None):
            self.freed[block] = line
        elif block:
            self.wrong.append(f"freed again at {line}, first at {self.freed.get(block, 'nowhere')}")


def library() -> UnicornMachine:
    """The guest, with a malloc() that never gives a block twice, and none for texts of a certain length."""
    machine = UnicornMachine.load(HERE / "notes.arm64")
    machine.bind("malloc", lambda regs: 0 if regs.arg(0) == 13 else machine.alloc(regs.arg(0)))
    machine.bind("free", lambda regs: None)
    return machine


def main() -> None:
    """Keep some notes, and say what became of the memory."""
    with library() as machine, Kprobes(machine) as k:
        heap = Heap(k)
        book = machine.call("book_open")
        for text, urgent in ((b"water the plants", 0), (b"pay the rent", 1), (b"sleep", 1)):
            added = machine.call("book_add", book, text, urgent) & 0xFFFFFFFF
            print(f"{text.decode()!r} {'is kept' if added < 1 << 31 else 'is not kept: no memory'}")
        machine.call("book_trim", book)
        machine.call("book_close", book)
        print(*heap.wrong, sep="\n")
        for size, line in heap.alive.values():
            print(f"{size} bytes leak, allocated at {line}")


if __name__ == "__main__":
    main()
