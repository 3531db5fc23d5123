"""Run by gdb at a breakpoint: prints the members of `*it` as libstdc++'s own printers show them, as JSON."""

import json
import sys

import gdb

sys.path.insert(0, "/usr/share/gcc/python")
from libstdcxx.v6.printers import register_libstdcxx_printers

register_libstdcxx_printers(None)
POINTERS = "unique_ptr", "shared_ptr", "weak_ptr"


def plain(value):
    kind = value.type.strip_typedefs()
    name = (kind.name or "").replace("std::", "", 1).partition("<")[0]
    printer = gdb.default_visualizer(value)
    if printer is None:
        if kind.code in (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION):
            return {field.name: plain(value[field]) for field in kind.fields()
                    if not field.is_base_class and hasattr(field, "bitpos")}
        if kind.code == gdb.TYPE_CODE_ARRAY:
            return [plain(value[n]) for n in range(kind.range()[1] + 1)]
        return float(value) if kind.code == gdb.TYPE_CODE_FLT else int(value)
    parts = [part for _, part in printer.children()] if hasattr(printer, "children") else []
    hint = printer.display_hint() if hasattr(printer, "display_hint") else None
    if hint == "string":
        text = printer.to_string()
        return text.string() if isinstance(text, gdb.Value) else text.value().string()
    if name in POINTERS:
        return int(parts[0]) != 0 if parts else False
    if name in ("optional", "variant"):
        return plain(parts[0]) if parts else "(empty)"
    parts = [plain(part) if isinstance(part, gdb.Value) else part for part in parts]
    return [list(pair) for pair in zip(parts[::2], parts[1::2], strict=True)] if hint == "map" else parts


it = gdb.parse_and_eval("*it")
print("VALUES", json.dumps({field.name: plain(it[field]) for field in it.type.fields()}))
