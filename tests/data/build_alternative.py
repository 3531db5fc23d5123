"""Build alternative.tar.xz: programs whose common debug information dwz -m has moved to another file. Needs gcc, g++ and dwz.

    python tests/data/build_alternative.py
"""

from __future__ import annotations

import subprocess
import tarfile
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
COMMON = """
struct inner { int x; long y; const char *name; unsigned char bytes[16]; };
enum colour { RED, GREEN = 7, BLUE };
struct shared { struct inner in; struct shared *next; int weight; enum colour colour; union { int i; unsigned u; } u;
                unsigned flags : 3, more : 5; };
typedef struct { struct shared *first; unsigned long count; struct { int a, b, c; } nested[4];
                 int (*compare)(const struct shared *, const struct shared *); } table_t;
struct unused_a { struct shared s[3]; table_t t; long more[10]; struct { char c; short s; } pairs[8]; };
struct unused_b { struct unused_a a; struct unused_b *link; int numbers[7][3]; };
static inline __attribute__((always_inline)) int weigh(const struct shared *s, int times) {
  int sum = s->in.x * times;
  __asm__ volatile("" : "+r"(sum));
  return sum + s->flags; }
"""
OTHERS = """
struct elsewhere { struct shared shared; int only_in_others[9]; };
struct elsewhere *elsewhere;
int other(struct elsewhere *e) { return e->only_in_others[3] + weigh(&e->shared, 4); }
"""
PROGRAM = """
#include "common.h"
struct unused_b keep_NAME;
__attribute__((noinline)) int look_NAME(table_t *t, struct shared *s, enum colour colour) {
  __asm__ volatile("" ::: "memory");
  return weigh(s, 2) + s->weight + colour + t->first->in.x; }
int run(void) {
  struct shared s = {{3, 4, "NAME", {1, 2}}, 0, 25, GREEN, {5}, 6, 7};
  table_t t = {&s, 1, {{1, 2, 3}, {4, 5, 6}}, 0};
  return look_NAME(&t, &s, BLUE); }
void _start(void) { run(); }
MORE
"""

CLASSES = """
struct inner { int x; long y; const char *name; unsigned char bytes[16]; };
struct Shape { inner in; Shape *next; int weight; int weigh(int times) const; int other(int a, long b, char c);
               struct { int a, b, c; } nested[4]; struct { long a; int b, c; } nested2[4]; };
struct unused { Shape s[3]; long more[10]; struct { char c; short s; } pairs[8]; };
"""
PROGRAM_OF_CLASSES = """
#include "classes.h"
unused keep_NAME;
inline __attribute__((always_inline)) int Shape::weigh(int times) const {
  int sum = in.x * times;
  __asm__ volatile("" : "+r"(sum));
  return sum + weight; }
extern "C" __attribute__((noinline)) int look_NAME(Shape *s) {
  __asm__ volatile("" ::: "memory");
  return s->weigh(2) + s->in.x; }
extern "C" int run() { Shape s = {}; s.in.x = 3; return look_NAME(&s); }
extern "C" void _start() { run(); }
"""


def add_classes(archive: tarfile.TarFile, folder: Path) -> None:
    """Programs of C++: the class is moved, and what is inlined of its functions is not."""
    (folder / "classes.h").write_text(CLASSES)
    programs = ["classes", "classes2", "classes3"]
    for program in programs:
        (folder / f"{program}.cpp").write_text(PROGRAM_OF_CLASSES.replace("NAME", program))
        subprocess.run(["g++", "-gdwarf-5", "-O1", "-ffreestanding", "-nostdlib", "-static", "-no-pie", "-Wl,--build-id", "-fno-exceptions",
                        "-fno-rtti", "-fno-asynchronous-unwind-tables", f"{program}.cpp", "-o", program], cwd=folder, check=True)
    archive.add(folder / "classes", "plain_classes")
    subprocess.run(["dwz", "-m", "common_classes.debug", "-M", "common_classes.debug", *programs], cwd=folder, check=True)
    for each in ("classes", "common_classes.debug"):
        archive.add(folder / each, each)


def main() -> None:
    with tempfile.TemporaryDirectory() as name, tarfile.open(HERE / "alternative.tar.xz", "w:xz") as archive:
        folder = Path(name)
        (folder / "common.h").write_text(COMMON)
        for version, dwarf, options in (("4", 4, []), ("5", 5, []), ("sup", 5, ["-5"])):  # -5: .debug_sup
            built = []
            for program in ("first", "second", "third"):  # the last two have a type that the first one has not
                source = PROGRAM.replace("NAME", program).replace("MORE", OTHERS * (program != "first"))
                (folder / f"{program}.c").write_text(source)
                subprocess.run(["gcc", f"-gdwarf-{dwarf}", "-O1", "-ffreestanding", "-nostdlib", "-static", "-no-pie", "-Wl,--build-id",
                                "-fno-asynchronous-unwind-tables", f"{program}.c", "-o", f"{program}{version}"], cwd=folder, check=True)
                built.append(f"{program}{version}")
            archive.add(folder / built[0], f"plain{version}")
            subprocess.run(["dwz", *options, "-m", f"common{version}.debug", "-M", f"common{version}.debug", *built], cwd=folder, check=True)
            for each in (built[0], f"common{version}.debug"):
                archive.add(folder / each, each)
        add_classes(archive, folder)


if __name__ == "__main__":
    main()
