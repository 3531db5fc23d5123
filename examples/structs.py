"""Struct views: a guest's own types, read and written by name, from its debug information.

    python examples/structs.py

notes.arm64 was compiled with -g. Nothing here knows where a member lies, how wide it is, or which bits a bit field has.
"""

from pathlib import Path

from kprobes import Kprobes, UnicornMachine

HERE = Path(__file__).resolve().parent


def main() -> None:
    """Add notes, look at them, change one."""
    with UnicornMachine.load(HERE / "notes.arm64") as machine, Kprobes(machine) as k:
        machine.bind("malloc", lambda regs: machine.alloc(regs.arg(0)))
        machine.bind("free", lambda regs: machine.free(regs.arg(0)) if regs.arg(0) else None)
        print(machine.type("struct note"))
        address = machine.call("book_open")
        with k.trace("p book_add text:string urgent", "r:added book_add number=$retval:s32 count=book->count") as trace:
            machine.call("book_add", address, b"water the plants", 0)
            machine.call("book_add", address, b"pay the rent", 1)
        for record in trace:
            print(record.event, dict(record.args))
        book = machine.view("struct book *", address)
        note = book.first
        while note:
            print(note.text, note.length, "urgent" if note.urgent else "can wait")
            note = note.next
        book.first.seen = 1
        print(book.first)


if __name__ == "__main__":
    main()
