"""Why does a parser reject an input? A library's verdict, and what it compared before it.

    python examples/parser.py [LIBEXPAT LIBC]

Expat and its C library run as they are, of any architecture; memory and randomness are Python's, so that nothing asks
an operating system. What the parser compares last, before it says no, is what it did not like.
"""

import sys

from kprobes import Kprobes, UnicornMachine

GOOD, BAD = b"<a><b>hello</b></a>", b"<a><b>hello</a>"


def load(expat: str, libc: str) -> UnicornMachine:
    """The two libraries, and what they would ask a system for."""
    machine, sizes = UnicornMachine.load(expat), dict[int, int]()
    machine.load_module(libc)

    def malloc(regs):
        block = machine.alloc(regs.arg(0) or 1)
        sizes[block] = regs.arg(0)
        return block

    def free(regs):
        if regs.arg(0):
            machine.free(regs.arg(0))

    def realloc(regs):
        old, size = regs.arg(0), regs.arg(1)
        new = machine.alloc(size or 1)
        if old:
            machine.write(new, machine.read(old, min(size, sizes[old])))
            machine.free(old)
        sizes[new] = size
        return new

    def random(regs):
        machine.write(regs.arg(0), bytes(regs.arg(1)))
        return regs.arg(1)

    for name, function in {"malloc": malloc, "free": free, "realloc": realloc, "getrandom": random,
                           "getenv": lambda regs: 0, "arc4random_buf": random, "getentropy": random}.items():
        machine.bind(name, function)
    machine.process()
    return machine


def parse(machine: UnicornMachine, k: Kprobes, text: bytes) -> None:
    """Parse it, and print the verdict and the last comparison of memory before it."""
    parser, compared = machine.call("XML_ParserCreate", 0), list[tuple[bytes, bytes]]()

    def comparing(p, regs):
        size = regs.arg(2)
        compared.append((regs.read(regs.arg(0), size), regs.read(regs.arg(1), size)))

    with k.kprobe("memcmp@plt", pre_handler=comparing):
        status = machine.call("XML_Parse", parser, text, len(text), 1)
    code = machine.call("XML_GetErrorCode", parser)
    message = machine.read_cstr(machine.call("XML_ErrorString", code)).decode() if code else "no error"
    print(f"{text.decode()}: status {status}, {message}, column {machine.call('XML_GetCurrentColumnNumber', parser)}")
    print(f"  {len(compared)} comparisons, the last: {compared[-1][0]} with {compared[-1][1]}")


def main(expat: str, libc: str) -> None:
    """Two inputs, one of them wrong."""
    with load(expat, libc) as machine, Kprobes(machine) as k:
        parse(machine, k, GOOD)
        parse(machine, k, BAD)


if __name__ == "__main__":
    main(*sys.argv[1:] or ("libexpat.so.1", "libc.so.6"))
