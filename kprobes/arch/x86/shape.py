"""Measures an x86 instruction: where its parts are, and how long it is.

Legacy prefixes, REX, an opcode in one of the opcode maps, ModRM, SIB, displacement, immediate
(Intel SDM volume 2, chapter 2 and appendix A; AMD APM volume 3, chapter 1 and appendix A). The
tables say which opcodes there are and what follows them. What depends on W, L or vvvv is left to
the CPU: its #UD in the slot is reported at the instruction's own address.
"""

from __future__ import annotations

from attrs import frozen

# --- What follows the opcode; capitals: a ModRM byte first.  . M nothing  b B imm8  w W imm16  e imm16 imm8  D imm32
# z Z imm16/32 by operand size  v imm16/32/64  a offset of address size  f far pointer  x no such opcode
# R ModRM names registers whatever mod says  T U group 3, B Z for /0 and /1, M for the others  ^ prefix or escape

ONE_BYTE = """
    MMMMbz..MMMMbz.^ MMMMbz..MMMMbz.. MMMMbz^.MMMMbz^. MMMMbz^.MMMMbz^.
    ................ ................ ..MM^^^^zZbB.... bbbbbbbbbbbbbbbb
    BZBBMMMMMMMMMMMM ..........f..... aaaa....bz...... bbbbbbbbvvvvvvvv
    BBw.MMBZe.w..b.. MMMMbb..MMMMMMMM bbbbbbbbzzfb.... ^.^^..TU......MM"""
TWO_BYTE = """
    MMMMx.....x.xM.^ MMMMMMMMMMMMMMMM RRRRxxxxMMMMMMMM ......x.^x^xxxxx
    MMMMMMMMMMMMMMMM MMMMMMMMMMMMMMMM MMMMMMMMMMMMMMMM BBBBMMM.MMMMMMMM
    zzzzzzzzzzzzzzzz MMMMMMMMMMMMMMMM ...MBMxx...MBMMM MMMMMMMMMMBMMMMM
    MMBMBBBM........ MMMMMMMMMMMMMMMM MMMMMMMMMMMMMMMM MMMMMMMMMMMMMMMM"""
FORMS = {"one-byte": ONE_BYTE, "0F": TWO_BYTE, "0F38": "M" * 256, "0F3A": "B" * 256, "3DNow": "B" * 256,
         "no map": "x" * 256,
         "VEX1": TWO_BYTE, "VEX2": "M" * 256, "VEX3": "B" * 256, "EVEX1": TWO_BYTE, "EVEX2": "M" * 256,
         "EVEX3": "B" * 256,
         "EVEX5": "M" * 256, "EVEX6": "M" * 256, "XOP8": "B" * 256, "XOP9": "M" * 256, "XOPA": "D" * 256}
MAPS = tuple(FORMS)  #: their names are the row names of straight-line instructions

# --- Which opcodes there are: maps | mandatory prefix (- none, * any, L legal with LOCK, 32 any but not in 64-bit mode)
# and opcodes, each perhaps narrowed to m memory or r register operands, /reg, or =whole ModRM bytes. All else is
# undefined.

DEFINED = """
one-byte|* 00-05 08-0D 10-15 18-1D 20-25 28-2D 30-35 38-3D 40-5F 63 68-81 83-8B 8C/0-5 8Dm 8E/0 8E/2-5
one-byte|* 8F/0 90-99 9B-C3 C6-C7/0
one-byte|* C6-C7=F8 C8-CD CF-D3 D7-D8 D9/0 D9r/1 D9m/2-7 D9r/3 D9=D0 D9=E0-E1 D9=E4-E5 D9=E8-EE D9/6-7
one-byte|* DAm DA/0-3 DA=E9 DB/0-3
one-byte|* DB=E0-E4 DB/5 DBr/6 DBm/7 DC DD/0-4 DDr/5 DDm/6-7 DEm DE/0-2 DE=D9 DE/4-7 DFm DF/0-3 DF=E0
one-byte|* DFr/5-6 E0-E9 EB-EF F1
one-byte|* F4-FD FE/0-1 FF/0-2 FFm/3 FF/4 FFm/5 FF/6|32 06-07 0E 16-17 1E-1F 27 2F 37 3F 60-61 62m 82 9A
one-byte|32 C4-C5m CE D4-D6 EA
one-byte|L 00-01m 08-09m 10-11m 18-19m 20-21m 28-29m 30-31m 80-81m/0-6 83m/0-6 86-87m F6-F7m/2-3 FE-FFm/0-1
0F|* 00/0-5 01m/0-4 01m/6-7 01=C0-C6 01=C8-CB 01=CF-D1 01=D4-E8 01=EE-FF 02-03 05-09 0B 0Dm 0E 18-1F 20/0 20/2-4 21 22/0
0F|* 22/2-4 23 30-35 37 40-4F 80-A5 A8-AD AF-B1 B2m B3 B4-B5m B6-B7 B9 BA/4-7 BB-C1 C7m/1 C7m/3-7 C7r/6-7 C8-CF FF
0F|L ABm B0-B1m B3m BAm/5-7 BBm C0-C1m C7m/1|66 2A 2C-2D 78r/0 79r AEm/6-7 AEr/6|F2 01=E9 2Bm 78-79r AEr/6 D6r
0F|F3 01m/5 01=EA 01=EC-ED 2Bm AEr/0-6 AEm/4 AEm/6 B8 D6r|- D1-D5 D7r D8-E5 E7m E8-EF F1-F6 F7r F8-FE
0F|- 2A 2C-2D 60-6B 6E-70 71-72r/2 71-72r/4 71-72r/6 73r/2 73r/6 74-79 7E-7F AEm AEr/5-7 C3m C4 C5r
0F VEX1|- 10-12 13m 14-16 17m 28-29 2Bm 2E-2F 50r 51-5F C2 C6|F3 10-12 16 2A 2C-2D 51-53 58-5F 6F-70 7E-7F C2 E6
0F VEX1|66 10-11 12-13m 14-15 16-17m 28-29 2Bm 2E-2F 50r 51 54-70 71-72r/2 71-72r/4 71-72r/6 73r/2-3 73r/6-7
0F VEX1|66 74-76 7C-7F C2 C4
0F VEX1|66 C5r C6 D0-D6 D7r D8-E6 E7m E8-EF F1-F6 F7r F8-FE|F2 10-12 2A 2C-2D 51 58-5A 5C-5F 70 7C-7D C2 D0 E6 F0m
VEX1|- 41-42r 44-47r 4A-4Br 77 90 91m 92-93r 98-99r AEm/2-3|66 41-42r 44-47r 4A-4Br 90 91m 92-93r 98-99r|F2 92-93r
0F38|- 00-0B 1C-1E C8-CD F0-F1m F6m F9m FCm|F3 D8m/0-3 DC DD-DFm FA-FBr F6 F8m FCm|F2 F0-F1 F8m FCm
0F38|66 00-0B 10 14-15 17 1C-1E 20-25 28-29 2Am 2B 30-35 37-41 80-82m CF DB-DF F0-F1m F5m F6 F8m FCm
0F3A|- 0F CC|66 08-0F 14-17 20-22 40-42 44 60-63 CE-CF DF|F3 F0=C0
3DNow|* 0C-0D 1C-1D 8A 8E 90 94 96-97 9A 9E A0 A4 A6-A7 AA AE B0 B4 B6-B7 BB BF
VEX2|- 49m/0 49=C0 50-51 5Er 6Cr B0m D2-D3 DA F2 F3/1-3 F5 F7|F3 4Bm 50-51 5Cr 5Er 72 B0-B1m D2-D3 DA F5 F7
VEX2|66 00-0F 13 16-19 1Am 1C-1E 20-25 28-29 2Am 2B 2C-2Fm 30-41 45-47 49m/0 4Bm 50-53 58-59 5Am 5Er 6Cr
VEX2|66 78-79 8Cm 8Em 90-93m
VEX2|66 96-9F A6-AF B0-B1m B4-BF CF D2-D3 DA-DF E0-EFm F7|F2 49r 4Bm 50-51 5Cr 5Er B0m CB-CDr DA F5-F7
VEX3|66 00-02 04-06 08-0F 14-19 1D 20-22 30-33r 38-39 40-42 44 46 48-4C 5C-63 68-6F 78-7F CE-CF DE-DF|F2 F0
EVEX1|- 10-12 13m 14-16 17m 28-29 2Bm 2E-2F 51 54-5F 78-79 C2 C6|F3 10-12 16 2A 2C-2D 51 58-5F 6F-70 78-7B 7E-7F C2 E6
EVEX1|66 10-11 12-13m 14-15 16-17m 28-29 2Bm 2E-2F 51 54-70 71/2 71/4 71/6 72/0-2 72/4 72/6 73/2-3 73/6-7 74-76
EVEX1|66 78-7B 7E-7F C2 C4
EVEX1|66 C5r C6 D1-D6 D8-E6 E7m E8-EF F1-F6 F8-FE|F2 10-12 2A 2C-2D 51 58-5A 5C-5F 6F-70 78-7B 7F C2 E6
EVEX2|66 00 04 0B-0D 10-16 18-19 1A-1Bm 1C-29 2Am 2B-2D 30-40 42-47 4C-55 58-59 5A-5Bm 62-66 70-73 75-79
EVEX2|66 7A-7Cr 7D-7F 83 88-8B
EVEX2|66 8D 8F 90-93m 96-9F A0-A3m A6-AF B4-BF C4 C6-C7m/1-2 C6-C7m/5-6 C8 CA-CD CF DC-DF
EVEX2|F3 10-15 20-27 28-2Ar 30-35 38-3Ar 52 72|F2 52-53m 68 72 9A-9Bm AA-ABm
EVEX3|- 08 0A 26-27 56-57 66-67 C2|66 00-01 03-05 08-0B 0F 14-1B 1D-23 25-27 38-3B 3E-3F 42-44 50-51|F3 C2
EVEX3|66 54-57 66-67 70-73 CE-CF
EVEX5|- 1D 2E-2F 51 58-5F 78-79 7C-7D|66 1D 5A-5B 6E 78-7E|F3 10-11 2A 2C-2D 51 58-5F 78-79 7B 7D|F2 5A 7A 7D
EVEX6|- 13|66 13 2C-2D 42-43 4C-4F 96-9F A6-AF B6-BF|F3 56-57 D6-D7|F2 56-57 D6-D7
XOP8|- 85-87 8E-8F 95-97 9E-9F A2-A3 A6 B6 C0-C3 CC-CF EC-EF
XOP9|- 01/1-7 02/1 02/6 12r/0-1 80-83 90-9B C1-C3 C6-C7 CB D1-D3 D6-D7 DB E1-E3
XOPA|- 10 12/0-1"""

# --- The shape of one instruction

# REX nibble: << 8
LOCK, ADDRESS, OPERAND, FS, GS, REP, REPNE, NULL, REX_W, REX = 1, 2, 4, 8, 16, 32, 64, 128, 0x800, 0x1000
# stands in place of the mandatory prefix, which is numbered as VEX does: none, 66, F3, F2
LOCKED = 4
TWO_BYTE_MAP, THREE_D_NOW, NO_MAP = MAPS.index("0F"), MAPS.index("3DNow"), MAPS.index("no map")
NUMBERED = {kind: {n: MAPS.index(f"{kind}{n:X}") for n in range(16) if f"{kind}{n:X}" in MAPS}
            for kind in ("VEX", "EVEX", "XOP")}
LETTERS = tuple("".join(grid.split()) for grid in FORMS.values())
IMMEDIATE = {"b": (1, 1, 1), "B": (1, 1, 1), "w": (2, 2, 2), "W": (2, 2, 2), "e": (3, 3, 3), "D": (4, 4, 4),
             "z": (2, 4, 4),
             "Z": (2, 4, 4), "v": (2, 4, 8), "f": (4, 6, 6)}  # bytes by operand size 2, 4, 8


@frozen
class EncodingShape:
    """The parts of an instruction. Positions count from its first byte, sizes are in bytes."""

    map: int  #: number in MAPS
    opcode: int
    prefix: int  #: mandatory prefix, or LOCKED
    seen: int  #: the prefixes, as OR of the constants above
    modrm: int  #: 0 where there is none
    memory: bool  #: the ModRM operand is memory
    relative: bool  #: ... and rip-relative
    operand: int  #: operand size by prefixes: 2, 4, 8
    address: int  #: address size: 2, 4, 8
    disp_at: int
    imm_at: int  #: also where the displacement ends
    size: int


def _prefix_effects(wide: bool) -> dict[int, tuple[int, int]]:
    """Make the table prefix -> (mask of earlier prefixes that still count, bits that it adds).

    A REX counts only as the last one (SDM 2.2.1).

    Args:
        wide: True in 64-bit mode.
    """
    # CS, DS, ES, SS: ignored in 64-bit mode (APM 1.2.4)
    null = (0xFF, NULL) if wide else (0xFF & ~(FS | GS), 0)
    legacy = {
        0x66: (0xFF, OPERAND),
        0x67: (0xFF, ADDRESS),
        0xF0: (0xFF, LOCK),
        0xF2: (0xFF & ~REP, REPNE),
        0xF3: (0xFF & ~REPNE, REP),
        0x64: (0xFF & ~(GS | NULL), FS),
        0x65: (0xFF & ~(FS | NULL), GS),
    }
    rex = {0x40 | bits: (0xFF, REX | bits << 8) for bits in range(16 if wide else 0)}
    return legacy | rex | dict.fromkeys((0x26, 0x2E, 0x36, 0x3E), null)


PREFIXES = {wide: _prefix_effects(wide) for wide in (False, True)}


def _extended(code: bytes, at: int, wide: bool) -> tuple[int, int, int] | None:
    """Return (map, mandatory prefix, offset of the opcode) of a VEX, EVEX or XOP instruction.

    Args:
        code: the instruction's bytes and what follows.
        at: offset of the byte that may begin such a prefix.
        wide: True in 64-bit mode.

    Returns:
        None: that byte is an opcode. NO_MAP as the map: the prefix names a map that there is not.
    """
    escape, second = code[at], code[at + 1]
    if escape == 0x8F:
        return (
            (NUMBERED["XOP"].get(second & 0x1F, NO_MAP), code[at + 2] & 3, at + 3)
            if second & 0x1F >= 8
            else None
        )
    if not wide and second < 0xC0:  # LES, LDS, BOUND take memory only
        return None
    if escape == 0xC5:
        return NUMBERED["VEX"][1], second & 3, at + 2
    if escape == 0xC4:
        return NUMBERED["VEX"].get(second & 0x1F, NO_MAP), code[at + 2] & 3, at + 3
    fixed = second & 8 == 0 and code[at + 2] & 4
    return NUMBERED["EVEX"].get(second & 7, NO_MAP) if fixed else NO_MAP, code[at + 2] & 3, at + 4


def _opcode(code: bytes, at: int, seen: int, wide: bool) -> tuple[int, int, int]:
    """Return (map, mandatory prefix, offset of the last opcode byte) of an instruction.

    The prefix is 0 for none, 1 for 66, 2 for F3, 3 for F2; LOCKED with LOCK, and for a VEX, EVEX or
    XOP instruction behind a prefix that makes it undefined.

    Args:
        code: its bytes and what follows.
        at: offset behind the legacy prefixes and REX.
        seen: these prefixes, as bits.
        wide: True in 64-bit mode.
    """
    first = code[at]
    if first in (0x62, 0xC4, 0xC5, 0x8F) and (found := _extended(code, at, wide)):
        # undefined: SDM 2.3.2
        return (
            (found[0], LOCKED, found[2]) if seen & (REX | LOCK | OPERAND | REP | REPNE) else found
        )
    prefix = 0
    if seen & LOCK:
        prefix = LOCKED
    elif seen & REP:
        prefix = 2
    elif seen & REPNE:
        prefix = 3
    elif seen & OPERAND:
        prefix = 1
    if first != 0x0F:
        return 0, prefix, at
    table = {0x38: 2, 0x3A: 3, 0x0F: THREE_D_NOW}.get(code[at + 1], TWO_BYTE_MAP)
    return table, prefix, at + 2 if table in (2, 3) else at + 1


def _displacement(code: bytes, at: int, address: int) -> tuple[int, int]:
    """Return (offset, size) of the displacement that goes with a ModRM byte (SDM tables 2-1 to
    2-3).

    Args:
        code: the instruction's bytes.
        at: offset of the ModRM byte.
        address: bytes of an address: 2, 4 or 8.
    """
    mod, rm = code[at] >> 6, code[at] & 7
    if address == 2:
        return at + 1, 2 if mod == 2 or (mod == 0 and rm == 6) else mod
    sib = rm == 4
    base = code[at + 1] & 7 if sib else rm
    return at + 1 + sib, 4 if mod == 2 or (mod == 0 and base == 5) else mod


def _immediate(letter: str, modrm: int, operand: int, address: int) -> int:
    """Return how many bytes of immediate, offset or far pointer an instruction has.

    Args:
        letter: of the opcode's form, in LETTERS.
        modrm: the ModRM byte; 0 where there is none.
        operand: operand size in bytes: 2, 4 or 8.
        address: address size in bytes.
    """
    if letter == "a":
        return address
    if letter in "TU" and modrm & 0x30:
        letter = "M"
    elif letter in "TU":
        letter = "B" if letter == "T" else "Z"
    return IMMEDIATE[letter][operand >> 2] if letter in IMMEDIATE else 0


def measure(code: bytes, wide: bool) -> EncodingShape:
    """Return where the parts of the instruction at the start of `code` are, and its size.

    Args:
        code: bytes of the instruction, and what follows it.
        wide: True in 64-bit mode.

    Raises:
        IndexError: `code` ends within the instruction.
    """
    at = seen = modrm = disp = 0
    while effect := PREFIXES[wide].get(code[at]):
        seen = seen & effect[0] | effect[1]
        at += 1
    table, prefix, at = _opcode(code, at, seen, wide)
    opcode, letter = code[at], LETTERS[table][code[at]]
    operand = 2 if seen & OPERAND else 4
    if seen & REX_W:
        operand = 8
    address = (8 if wide else 4) >> (seen & ADDRESS > 0)
    memory = relative = False
    at += 1
    if letter.isupper():
        modrm = code[at]
        memory = modrm < 0xC0 and letter != "R"
        relative = wide and memory and modrm & 0xC7 == 5
        at, disp = _displacement(code, at, address) if memory else (at + 1, 0)
    if opcode == 0x78 and table == TWO_BYTE_MAP and prefix & 1:  # EXTRQ, INSERTQ: two imm8
        letter = "W"
    size = at + disp + _immediate(letter, modrm, operand, address)
    if size > len(code):
        raise IndexError(size)
    if table == THREE_D_NOW:
        opcode = code[size - 1]
    return EncodingShape(
        table, opcode, prefix, seen, modrm, memory, relative, operand, address, at, at + disp, size
    )


def deciding(code: bytes, wide: bool) -> int:
    """Return how many first bytes of an instruction decide its size and kind (`Walking.decide`).

    Its displacement and immediate do not.

    Args:
        code: bytes of the instruction, and what follows it.
        wide: True in 64-bit mode.

    Raises:
        IndexError: `code` ends within the instruction.
    """
    shape = measure(code, wide)
    # 3DNow! has its opcode behind the displacement
    return shape.size if shape.map == THREE_D_NOW else shape.disp_at
