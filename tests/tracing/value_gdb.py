"""Run by gdb: what all variables are at addresses, as JSON. The task is in $VALUES_TASK, a JSON file.

The task: `file`; `places`, addresses; `functions`, names whose parameters are shown behind their prologues; `most`, hits of
each place that are shown; `out`, where the answer goes. The answer: `places`, address -> a list for each of its hits, of
name -> value; `prologues`, name -> the same of parameters.

Or: `file`; `stub`, the socket of a stub (value_stub.py); `out`. The answer: a line for each stop, name -> value.
Or: `file`; `prologues`, names of functions; `out`. The answer: name -> address behind the prologue.
"""
import json
import os

import gdb

INTS = {gdb.TYPE_CODE_INT, gdb.TYPE_CODE_CHAR, gdb.TYPE_CODE_BOOL, gdb.TYPE_CODE_ENUM}


def shown(value, depth=0):
    """A value as JSON has it: numbers, {"float": text}, {member: value}, [element]; None: optimized out."""
    try:
        type = value.type.strip_typedefs()
        if value.is_optimized_out and type.code not in (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION, gdb.TYPE_CODE_ARRAY):
            return None
        if type.code in INTS and type.sizeof <= 8:
            return int(value)
        if type.code in INTS:
            raw = int(value.format_string(format="x"), 16)
            return raw - (raw >> 127 << 128) if "unsigned" not in str(type) and not str(type).startswith("u") else raw
        if type.code in (gdb.TYPE_CODE_PTR, gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF):
            return {"pointer": int(value) if type.code == gdb.TYPE_CODE_PTR else int(value.address or 0)}
        if type.code == gdb.TYPE_CODE_FLT:
            return {"float": float(value).hex()}
        if depth > 4:
            return "deep"
        if type.code in (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION):
            found = {}
            for field in type.fields():
                if not hasattr(field, "bitpos") or field.artificial or (field.name or "").startswith("_vptr"):
                    continue
                if field.is_base_class:
                    found.update(members(value[field], depth + 1))
                elif field.name:
                    found[field.name] = shown(value[field], depth + 1)
                else:
                    found.update(members(value[field], depth + 1))
            return found
        if type.code == gdb.TYPE_CODE_ARRAY:
            low, high = type.range()
            if high == (1 << 32) - 1:  # of 32 bits: -1, an array without elements
                return []
            return [shown(value[n], depth + 1) for n in range(low, min(high, low + 40) + 1)]
        if type.code == gdb.TYPE_CODE_COMPLEX:
            gdb.set_convenience_variable("both", value)
            return {"complex": [float(gdb.parse_and_eval(f"{part}($both)")).hex() for part in ("$_creal", "$_cimag")]}
        return "other"
    except (gdb.error, ValueError) as error:  # ValueError: "<synthetic pointer>" for a number
        return None if "optimized" in str(error) else f"error: {error}"


def members(value, depth):
    """The members of a base class or of a member without a name; none where it lies too deep."""
    found = shown(value, depth)
    return found if isinstance(found, dict) else {}


def variables(arguments):
    """Name -> value of what is in scope, in functions that stand inlined there, too; the innermost of each name.

    Several of a name in one scope are {"either": [value of each]}: clang puts static variables of all blocks
    into their function's, and gdb what a block of an abstract instance has into each that is inlined.

    Args:
        arguments: True: the function's own parameters only, which those of functions inlined there may hide.
    """
    frame = gdb.newest_frame()
    pc = frame.pc()
    while frame is not None and frame.type() == gdb.INLINE_FRAME:
        frame = frame.older()
    block = gdb.block_for_pc(pc)
    chain = []
    while block is not None and block.superblock is not None and not block.is_static and not block.is_global:
        chain.append(block)
        outermost = block.superblock.is_static or block.superblock.is_global or not inside(block)
        if block.function is not None and outermost:
            break
        block = block.superblock
    found = {}
    for block in chain[-1:] if arguments else chain:
        here = {}
        for symbol in block:
            if (symbol.is_argument or symbol.is_variable) and not (arguments and not symbol.is_argument):
                try:
                    value = shown(symbol.value(frame))
                except gdb.error as error:
                    value = None if "optimized" in str(error) else f"error: {error}"
                here.setdefault(symbol.name, []).append(value)
        several = {name: each[0] if len(each) == 1 else {"either": each} for name, each in here.items()}
        found = {**several, **found}
    return found


def stack():
    """pc and the return addresses above it."""
    found, frame = [], gdb.newest_frame()
    while frame is not None and len(found) < 60:
        if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
            found.append(frame.pc())
        frame = frame.older()
    return found


def inside(block):
    """True where a function's block stands in another function's."""
    block = block.superblock
    while block is not None and not block.is_static and not block.is_global:
        if block.function is not None:
            return True
        block = block.superblock
    return False


class Place(gdb.Breakpoint):
    def __init__(self, where, kept, most, arguments):
        super().__init__(where, internal=True)
        self.silent, self.kept, self.most, self.arguments = True, kept, most, arguments

    def stop(self):
        if len(self.kept) < self.most:
            self.kept.append({**variables(self.arguments), "(stack)": stack()})
        return False


def show_stops(stub, file):
    """Write what is in scope at each stop of a stub, a line for each."""
    gdb.execute("set remotetimeout 100")
    gdb.execute("target remote " + stub)
    while gdb.selected_inferior().pid:
        json.dump({**variables(False), "(stack)": stack()}, file)
        file.write("\n")
        file.flush()
        gdb.execute("continue", to_string=True)


def behind_prologue(name):
    """Where a breakpoint of a function goes; 0: nowhere."""
    try:
        breakpoint = gdb.Breakpoint(name, internal=True)
    except gdb.error:
        return 0
    found = breakpoint.locations[0].address if breakpoint.locations else 0
    breakpoint.delete()
    return found


def main():
    with open(os.environ["VALUES_TASK"]) as file:
        task = json.load(file)
    for line in ("set confirm off", "set pagination off", "set disable-randomization on", "set print object off",
                 "set startup-with-shell off", "set print entry-values no", "set language auto"):
        gdb.execute(line)
    gdb.execute("file " + task["file"])
    if "stub" in task:
        with open(task["out"], "w") as file:
            show_stops(task["stub"], file)
        return
    if "prologues" in task:
        with open(task["out"], "w") as file:
            json.dump({name: behind_prologue(name) for name in task["prologues"]}, file)
        return
    answer = {"places": {}, "prologues": {}}
    for place in task["places"]:
        Place(f"*{place:#x}", answer["places"].setdefault(str(place), []), task["most"], False)
    for name in task["functions"]:
        try:
            Place(name, answer["prologues"].setdefault(name, []), task["most"], True)
        except gdb.error:
            pass
    gdb.execute("run > /dev/null")
    with open(task["out"], "w") as file:
        json.dump(answer, file)


main()
gdb.execute("quit")
