"""Rebuild freertos.bin and its symbols: `python examples/freertos/build.py KERNEL`.

KERNEL is a checkout of FreeRTOS-Kernel, which is not kept here; its licence is FreeRTOS-LICENSE.md. The image that is
here was made of commit 4269c69a16f924c11adeedbb31591f6fad9f41b2, with ziglang 0.17.0.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from elftools.elf.elffile import ELFFile

HERE = Path(__file__).resolve().parent
FLAGS = [
    "-target", "thumb-freestanding-eabi", "-mcpu=cortex_m3", "-std=c11", "-O1", "-ffreestanding",
    "-fno-builtin", "-nostdlib", "-static", "-fno-pic", "-fno-pie", "-fno-sanitize=all",
    "-fno-stack-protector", "-fno-unwind-tables", "-fno-asynchronous-unwind-tables", "-fno-ident",
    "-g0", "-w", "-Wl,--build-id=none", "-Wl,-e,reset",
]  # fmt: skip
HEADERS = {"stdlib.h": "#include <stddef.h>\n",
           "string.h": "#include <stddef.h>\nvoid *memset(void *, int, size_t);\n"
                       "void *memcpy(void *, const void *, size_t);\nsize_t strlen(const char *);\n"}


def main(kernel: Path) -> None:
    port = kernel / "portable/GCC/ARM_CM3"
    sources = [kernel / "tasks.c", kernel / "list.c", kernel / "queue.c", port / "port.c",
               kernel / "portable/MemMang/heap_4.c", HERE / "main.c"]
    with tempfile.TemporaryDirectory() as folder:
        for name, text in HEADERS.items():
            Path(folder, name).write_text(text)
        out = Path(folder, "freertos.elf")
        subprocess.run([sys.executable, "-m", "ziglang", "cc", *FLAGS, f"-Wl,-T,{HERE / 'guest.ld'}", f"-I{folder}",
                        f"-I{kernel / 'include'}", f"-I{port}", f"-I{HERE}", *map(str, sources), "-o", str(out)],
                       check=True)
        with out.open("rb") as file:
            elf = ELFFile(file)
            kinds = {"STT_FUNC": "T", "STT_OBJECT": "b"}
            lines = sorted(f"{s['st_value'] & ~1:08x} {s['st_size']:08x} {kinds[s['st_info']['type']]} {s.name}\n"
                           for s in elf.get_section_by_name(".symtab").iter_symbols()
                           if s["st_info"]["type"] in kinds)
            (HERE / "freertos.bin").write_bytes(b"".join(elf.get_section_by_name(name).data()
                                                         for name in (".text", ".data")))
            (HERE / "freertos.symbols").write_text("".join(lines))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
