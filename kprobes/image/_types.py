"""Relocation types of every machine, as rows. Facts from the ELF supplement of each processor.

A line is: formula, field, check, then NAME=number for each type of that shape.

Formula, terms in the supplements' letters: S symbol, A addend, P place (P8: rounded down to 8), T
the Thumb bit, N (S+A)|T, B load bias, L where a call of S lands (in another image: at a veneer), Z
symbol size, V what the field holds now, I what the ifunc resolver at B+A chose; GOT, GP, TOC the
bases; G address of a GOT slot that holds S (D: that holds S+A; Q: the 64 KiB page of S+A); PS, PP,
PD, PGOT the 4 KiB pages of S+A, P, D, GOT; numbers are hexadecimal. TLS0 (the image's number), TLSA
(S+A, S the offset in the image's block), TLSP (the same from the thread pointer; TLSN: negated) and
TLS (code: left alone) are thread-local; TLSD is two words, the function that is asked and TLSP.
Other words are functions of _formulas.

Field: unit (b h w d: 1, 2, 4, 8 bytes; n: a native word; i: an instruction word; t: two halfwords,
the first one high), then which value bits go where, highest first: 20:2@5 puts value bits 20..2 at
unit bit 5; /16: an addend in place is not scaled.

Check: s signed, u unsigned, x either; a: the bits below the field are zero; c: s and a, and it is a
call (calls of absent weak symbols are left alone, guarded code never runs them); r: MIPS's 256 MiB
region; -: none.
"""

from __future__ import annotations

(
    SPARC,
    I386,
    M68K,
    MIPS,
    SPARC32PLUS,
    PPC,
    PPC64,
    S390,
    ARM,
    SPARCV9,
    TRICORE,
    X86_64,
    AARCH64,
    RISCV,
) = (2, 3, 4, 8, 18, 20, 21, 22, 40, 43, 44, 62, 183, 243)

_PPC = """
-          -          -  NONE=0 PLTSEQ=119 PLTCALL=120 ENTRY=118 TOCSAVE=109
COPY       -          -  COPY=19
S+A        w31:0      -  ADDR32=1 UADDR32=24
S+A        w25:2@2    sa ADDR24=2
S+A        h15:0      x  ADDR16=3 UADDR16=25
S+A        h15:0      -  ADDR16_LO=4
S+A        h31:16     s  ADDR16_HI=5
S+A+8000   h31:16     s  ADDR16_HA=6
S+A        w15:2@2    sa ADDR14=7 ADDR14_BRTAKEN=8 ADDR14_BRNTAKEN=9
L+A-P      w25:2@2    c  REL24=10
S+A-P      w15:2@2    c  REL14=11 REL14_BRTAKEN=12 REL14_BRNTAKEN=13
S+A        n          -  GLOB_DAT=20
B+A        n          -  RELATIVE=22
I          n          -  IRELATIVE=248
S+A-P      w31:0      s  REL32=26
S+A-P      h15:0      s  REL16=249
S+A-P      h15:0      -  REL16_LO=250
S+A-P      h31:16     s  REL16_HI=251
S+A-P+8000 h31:16     s  REL16_HA=252
"""
_SPARC = """
-          -          -  NONE=0 REGISTER=53 GOTDATA_OP=84
COPY       -          -  COPY=19
S+A        b7:0       x  8=1
S+A        h15:0      x  16=2 UA16=55
S+A        w31:0      x  32=3 UA32=23 PLT32=24
S+A-P      b7:0       s  DISP8=4
S+A-P      h15:0      s  DISP16=5
S+A-P      w31:0      s  DISP32=6
S+A-P      w31:2      c  WDISP30=7 WPLT30=18
S+A-P      w23:2      c  WDISP22=8
S+A-P      w20:2      c  WDISP19=41
S+A-P      w17:16@20,15:2 c WDISP16=40
S+A-P      w11:10@19,9:2@5 c WDISP10=88
S+A        w31:10     u  HI22=9
S+A        w31:10     -  LM22=36
S+A        w21:0      x  22=10
S+A        w12:0      s  13=11
S+A        w9:0       -  LO10=12
G+A-GOT    w9:0       -  GOT10=13
G+A-GOT    w12:0      s  GOT13=14
G+A-GOT    w31:10     -  GOT22=15 GOTDATA_OP_HIX22=82
GOP        w12:0      -  GOTDATA_OP_LOX10=83
S+A-P      w9:0       -  PC10=16
S+A-P      w31:10     s  PC22=17
S+A        n          -  GLOB_DAT=20
S          plt        -  JMP_SLOT=21
B+A        n          -  RELATIVE=22
I          plt        -  JMP_IREL=248
I          n          -  IRELATIVE=249
S+A        d63:0      -  64=32 UA64=54 PLT64=47
S+A-P      d63:0      -  DISP64=46
OLO        w12:0      s  OLO10=33
S+A        w63:42     -  HH22=34
S+A        w41:32     -  HM10=35
HIX        w31:10     -  HIX22=48
LOX        w12:0      -  LOX10=49
S+A        w43:22     u  H44=50
S+A        w21:12     -  M44=51
S+A        w11:0      -  L44=52
S+A        w33:12     u  H34=85
TLS0       n          -  TLS_DTPMOD32=74 TLS_DTPMOD64=75
TLSA       n          -  TLS_DTPOFF32=76 TLS_DTPOFF64=77
TLSP       n          -  TLS_TPOFF32=78 TLS_TPOFF64=79
TLS        -          -  TLS=56..73
"""
TABLES: dict[int, tuple[str, str]] = {
    X86_64: (
        "R_X86_64_",
        """
-          -          -  NONE=0
COPY       -          -  COPY=5
S+A        d63:0      -  64=1
S+A-P      w31:0      s  PC32=2
S+A-P      w31:0      c  PLT32=4
S          n          -  GLOB_DAT=6 JUMP_SLOT=7
B+A        n          -  RELATIVE=8
B+A        d63:0      -  RELATIVE64=38
I          n          -  IRELATIVE=37
S+A        w31:0      u  32=10
S+A        w31:0      s  32S=11
S+A        h15:0      x  16=12
S+A-P      h15:0      s  PC16=13
S+A        b7:0       x  8=14
S+A-P      b7:0       s  PC8=15
S+A-P      d63:0      -  PC64=24
G+A-P      w31:0      s  GOTPCREL=9 GOTPCRELX=41 REX_GOTPCRELX=42 CODE_4_GOTPCRELX=43
G+A-P      d63:0      -  GOTPCREL64=28
G+A-GOT    w31:0      s  GOT32=3
G+A-GOT    d63:0      -  GOT64=27
S+A-GOT    d63:0      -  GOTOFF64=25 PLTOFF64=31
GOT+A-P    w31:0      s  GOTPC32=26
GOT+A-P    d63:0      -  GOTPC64=29
Z+A        w31:0      u  SIZE32=32
Z+A        d63:0      -  SIZE64=33
TLS0       n          -  DTPMOD64=16
TLSA       n          -  DTPOFF64=17
TLSP       n          -  TPOFF64=18
TLS        -          -  TLS=19..23 TLSDESC=34..36
""",
    ),
    I386: (
        "R_386_",
        """
-          -          -  NONE=0
COPY       -          -  COPY=5
S+A        w31:0      -  32=1
S+A-P      w31:0      -  PC32=2
S+A-P      w31:0      c  PLT32=4
G386       w31:0      -  GOT32=3 GOT32X=43
S          w31:0      -  GLOB_DAT=6 JMP_SLOT=7
B+A        w31:0      -  RELATIVE=8
I          w31:0      -  IRELATIVE=42
S+A-GOT    w31:0      -  GOTOFF=9
GOT+A-P    w31:0      -  GOTPC=10
S+A        h15:0      x  16=20
S+A-P      h15:0      s  PC16=21
S+A        b7:0       x  8=22
S+A-P      b7:0       s  PC8=23
Z+A        w31:0      -  SIZE32=38
TLS0       w31:0      -  TLS_DTPMOD32=35
TLSA       w31:0      -  TLS_DTPOFF32=36
TLSP       w31:0      -  TLS_TPOFF=14
TLSN       w31:0      -  TLS_TPOFF32=37
TLS        -          -  TLS=15..19 TLS=24..34 TLSDESC=39..41
""",
    ),
    AARCH64: (
        "R_AARCH64_",
        """
-          -          -  NONE=0 NONE=256
COPY       -          -  COPY=1024
S+A        d63:0      -  ABS64=257
S+A        w31:0      x  ABS32=258
S+A        h15:0      x  ABS16=259
S+A-P      d63:0      -  PREL64=260
S+A-P      w31:0      x  PREL32=261
S+A-P      w31:0      s  PLT32=314
S+A-P      h15:0      x  PREL16=262
S+A        i15:0@5    u  MOVW_UABS_G0=263
S+A        i15:0@5    -  MOVW_UABS_G0_NC=264
S+A        i31:16@5   u  MOVW_UABS_G1=265
S+A        i31:16@5   -  MOVW_UABS_G1_NC=266
S+A        i47:32@5   u  MOVW_UABS_G2=267
S+A        i47:32@5   -  MOVW_UABS_G2_NC=268
S+A        i63:48@5   -  MOVW_UABS_G3=269
S+A-P      i20:2@5    sa LD_PREL_LO19=273
S+A-P      i1:0@29,20:2@5 s ADR_PREL_LO21=274
PS-PP      i13:12@29,32:14@5 s ADR_PREL_PG_HI21=275
PS-PP      i13:12@29,32:14@5 - ADR_PREL_PG_HI21_NC=276
S+A        i11:0@10   -  ADD_ABS_LO12_NC=277 LDST8_ABS_LO12_NC=278
S+A        i11:1@10   a  LDST16_ABS_LO12_NC=284
S+A        i11:2@10   a  LDST32_ABS_LO12_NC=285
S+A        i11:3@10   a  LDST64_ABS_LO12_NC=286
S+A        i11:4@10   a  LDST128_ABS_LO12_NC=299
S+A-P      i15:2@5    c  TSTBR14=279
S+A-P      i20:2@5    c  CONDBR19=280
S+A-P      i27:2      c  JUMP26=282 CALL26=283
S+A-GOT    d63:0      -  GOTREL64=307
S+A-GOT    w31:0      s  GOTREL32=308
D-P        i20:2@5    sa GOT_LD_PREL19=309
D-GOT      i14:3@10   ua LD64_GOTOFF_LO15=310
PD-PP      i13:12@29,32:14@5 s ADR_GOT_PAGE=311
D          i11:3@10   a  LD64_GOT_LO12_NC=312
D-PGOT     i14:3@10   ua LD64_GOTPAGE_LO15=313
D-P        w31:0      s  GOTPCREL32=315
S+A        d63:0      -  GLOB_DAT=1025 JUMP_SLOT=1026
B+A        d63:0      -  RELATIVE=1027
I          d63:0      -  IRELATIVE=1032
TLS0       d63:0      -  TLS_DTPMOD=1028
TLSA       d63:0      -  TLS_DTPREL=1029
TLSP       d63:0      -  TLS_TPREL=1030
TLSD       d63:0      -  TLSDESC=1031
TLS        -          -  TLS=512..573
""",
    ),
    ARM: (
        "R_ARM_",
        """
-          -          -  NONE=0 V4BX=40
COPY       -          -  COPY=20
N-P        a32        -  PC24=1 PLT32=27 CALL=28 JUMP24=29
N-P        t32        -  THM_CALL=10 THM_JUMP24=30
S+A-P      t20:20@26,19:19@11,18:18@13,17:12@16,11:1 s THM_JUMP19=51
S+A-P      h11:1      s  THM_JUMP11=102
S+A-P      h8:1       s  THM_JUMP8=103
N          w31:0      -  ABS32=2 TARGET1=38
N-P        w31:0      -  REL32=3
N-P        w30:0      s  PREL31=42
S+A        h15:0      x  ABS16=5
S+A        w11:0      u  ABS12=6
S+A        b7:0       x  ABS8=8
N-GOT      w31:0      -  GOTOFF32=24
GOT+A-P    w31:0      -  BASE_PREL=25
G+A-GOT    w31:0      -  GOT_BREL=26
G+A        w31:0      -  GOT_ABS=95
G+A-P      w31:0      -  GOT_PREL=96 TARGET2=41
G+A-GOT    w11:0      u  GOT_BREL12=97
N          w15:12@16,11:0 - MOVW_ABS_NC=43
S+A        w31:28@16,27:16/16 - MOVT_ABS=44
N-P        w15:12@16,11:0 - MOVW_PREL_NC=45
S+A-P      w31:28@16,27:16/16 - MOVT_PREL=46
N          t15:12@16,11:11@26,10:8@12,7:0 - THM_MOVW_ABS_NC=47
S+A        t31:28@16,27:27@26,26:24@12,23:16/16 - THM_MOVT_ABS=48
N-P        t15:12@16,11:11@26,10:8@12,7:0 - THM_MOVW_PREL_NC=49
S+A-P      t31:28@16,27:27@26,26:24@12,23:16/16 - THM_MOVT_PREL=50
S+T        w31:0      -  GLOB_DAT=21 JUMP_SLOT=22
B+A        w31:0      -  RELATIVE=23
I          w31:0      -  IRELATIVE=160
TLS0       w31:0      -  TLS_DTPMOD32=17
TLSA       w31:0      -  TLS_DTPOFF32=18
TLSP       w31:0      -  TLS_TPOFF32=19
TLS        -          -  TLS_DESC=13 TLS=90..93 TLS=104..111 THM_TLS=129..130
""",
    ),
    PPC: (
        "R_PPC_",
        _PPC
        + """
S          n          -  JMP_SLOT=21
D-GOT      h15:0      s  GOT16=14
D-GOT      h15:0      -  GOT16_LO=15
L-P        w25:2@2    c  PLTREL24=18
L+A-P      w25:2@2    c  LOCAL24PC=23
TLS0       w31:0      -  DTPMOD32=68
TLSA       w31:0      -  DTPREL32=78
TLSP       w31:0      -  TPREL32=73
TLS        -          -  TLS=67 TPREL=69..72 DTPREL=74..77 GOT_TLS=79..96
""",
    ),
    PPC64: (
        "R_PPC64_",
        _PPC
        + """
S          d63:0      -  JMP_SLOT=21
I          d63:0      -  JMP_IREL=247
S+A        d63:0      -  ADDR64=38 UADDR64=43 ADDR64_LOCAL=117
S+A        h47:32     -  ADDR16_HIGHER=39
S+A+8000   h47:32     -  ADDR16_HIGHERA=40
S+A        h63:48     -  ADDR16_HIGHEST=41
S+A+8000   h63:48     -  ADDR16_HIGHESTA=42
S+A        h31:16     -  ADDR16_HIGH=110
S+A+8000   h31:16     -  ADDR16_HIGHA=111
S+A-P      d63:0      -  REL64=44
S+A-TOC    h15:0      s  TOC16=47
S+A-TOC    h15:0      -  TOC16_LO=48
S+A-TOC    h31:16     s  TOC16_HI=49
S+A-TOC+8000 h31:16   s  TOC16_HA=50
TOC+A      d63:0      -  TOC=51
S+A        h15:2@2    sa ADDR16_DS=56
S+A        h15:2@2    a  ADDR16_LO_DS=57
S+A-TOC    h15:2@2    sa TOC16_DS=63
S+A-TOC    h15:2@2    a  TOC16_LO_DS=64
D-TOC      h15:0      s  GOT16=14
D-TOC      h15:0      -  GOT16_LO=15
D-TOC      h31:16     s  GOT16_HI=16
D-TOC+8000 h31:16     s  GOT16_HA=17
D-TOC      h15:2@2    sa GOT16_DS=58
D-TOC      h15:2@2    a  GOT16_LO_DS=59
TLS0       d63:0      -  DTPMOD64=68
TLSA       d63:0      -  DTPREL64=78
TLSP       d63:0      -  TPREL64=73
TLS        -          -  TLS=67 TPREL=69..72 DTPREL=74..77 GOT_TLS=79..108 TPREL=112..115
""",
    ),
    MIPS: (
        "R_MIPS_",
        """
-          -          -  NONE=0 JALR=37
COPY       -          -  COPY=126
S+A        w15:0      x  16=1
S+A        w31:0      x  32=2
REL32      w31:0      -  REL32=3
S+A        d63:0      -  64=18
S-A        d63:0      -  SUB=24
L+A        w27:2      ra 26=4
HI         w31:16     -  HI16=5
LO         w15:0      -  LO16=6
S+A+80008000 w47:32   -  HIGHER=28
S+A+800080008000 w63:48 - HIGHEST=29
S+A-GP     w15:0      s  GPREL16=7 LITERAL=8
S+A-GP     w31:0      s  GPREL32=12
GOT16      w15:0      s  GOT16=9
D-GP       w15:0      s  CALL16=11 GOT_DISP=19
Q-GP       w15:0      s  GOT_PAGE=20
S+A        w15:0      -  GOT_OFST=21
D-GP+8000  w31:16     -  GOT_HI16=22 CALL_HI16=30
D-GP       w15:0      -  GOT_LO16=23 CALL_LO16=31
S+A-P      w17:2      c  PC16=10
S+A-P      w31:0      s  PC32=248
S+A-P      w22:2      c  PC21_S2=60
S+A-P      w27:2      c  PC26_S2=61
S+A-P8     w20:3      sa PC18_S3=62
S+A-P      w20:2      sa PC19_S2=63
S+A-P+8000 w31:16     -  PCHI16=64
S+A-P      w15:0      -  PCLO16=65
S          n          -  GLOB_DAT=51 JUMP_SLOT=127
TLS0       n          -  TLS_DTPMOD32=38 TLS_DTPMOD64=40
TLSA       w31:0      -  TLS_DTPREL32=39
TLSP       w31:0      -  TLS_TPREL32=47
TLSA       d63:0      -  TLS_DTPREL64=41
TLSP       d63:0      -  TLS_TPREL64=48
TLS        -          -  TLS=42..46 TLS=49..50
""",
    ),
    RISCV: (
        "R_RISCV_",
        """
-          -          -  NONE=0 ALIGN=43 RELAX=51
COPY       -          -  COPY=4
S+A        w31:0      x  32=1
S+A        d63:0      -  64=2
B+A        n          -  RELATIVE=3
S          n          -  JUMP_SLOT=5
I          n          -  IRELATIVE=58
S+A-P      w12:12@31,10:5@25,4:1@8,11:11@7 c BRANCH=16
S+A-P      w20:20@31,10:1@21,11:11@20,19:12@12 c JAL=17
PAIR       d31:12@12,11:0@52 c CALL=18 CALL_PLT=19
GHI20      w31:12@12  s  GOT_HI20=20
HI20       w31:12@12  s  PCREL_HI20=23
LO12       w11:0@20   -  PCREL_LO12_I=24
LO12       w11:5@25,4:0@7 - PCREL_LO12_S=25
S+A+800    w31:12@12  s  HI20=26
S+A        w11:0@20   -  LO12_I=27
S+A        w11:5@25,4:0@7 - LO12_S=28
V+S+A      b7:0       -  ADD8=33
V+S+A      h15:0      -  ADD16=34
V+S+A      w31:0      -  ADD32=35
V+S+A      d63:0      -  ADD64=36
V-S-A      b7:0       -  SUB8=37
V-S-A      h15:0      -  SUB16=38
V-S-A      w31:0      -  SUB32=39
V-S-A      d63:0      -  SUB64=40
V-S-A      b5:0       -  SUB6=52
S+A        b5:0       -  SET6=53
S+A        b7:0       -  SET8=54
S+A        h15:0      -  SET16=55
S+A        w31:0      -  SET32=56
S+A        uleb       -  SET_ULEB128=60
V-S-A      uleb       -  SUB_ULEB128=61
G+A-P      w31:0      s  GOT32_PCREL=41
S+A-P      w31:0      s  32_PCREL=57 PLT32=59
S+A-P      h8:8@12,4:3@10,7:6@5,2:1@3,5:5@2 c RVC_BRANCH=44
S+A-P      h11:11@12,4:4@11,9:8@9,10:10@8,6:6@7,7:7@6,3:1@3,5:5@2 c RVC_JUMP=45
TLS0       n          -  TLS_DTPMOD32=6 TLS_DTPMOD64=7
TLSA       n          -  TLS_DTPREL32=8 TLS_DTPREL64=9
TLSP       n          -  TLS_TPREL32=10 TLS_TPREL64=11
TLS        -          -  TLSDESC=12 TLS=21..22 TPREL=29..32 TPREL=49..50 TLSDESC=62..65
""",
    ),
    S390: (
        "R_390_",
        """
-          -          -  NONE=0
COPY       -          -  COPY=9
S+A        b7:0       x  8=1
S+A        h11:0      u  12=2
S+A        h15:0      x  16=3
S+A        w31:0      x  32=4
S+A        w11:0@16,19:12@8 s 20=57
S+A        d63:0      -  64=22
S+A-P      w31:0      s  PC32=5 PLT32=8
S+A-P      d63:0      -  PC64=23 PLT64=25
S+A-P      h15:0      s  PC16=16
S+A-P      h16:1      c  PC16DBL=17 PLT16DBL=18
S+A-P      w32:1      sa PC32DBL=19
S+A-P      w32:1      c  PLT32DBL=20
S+A-P      h12:1      c  PC12DBL=62 PLT12DBL=63
S+A        n          -  GLOB_DAT=10 JMP_SLOT=11
B+A        n          -  RELATIVE=12
I          n          -  IRELATIVE=61
S+A-GOT    h15:0      s  GOTOFF16=27 PLTOFF16=34
S+A-GOT    w31:0      s  GOTOFF32=13 PLTOFF32=35
S+A-GOT    d63:0      -  GOTOFF64=28 PLTOFF64=36
GOT+A-P    w31:0      s  GOTPC=14
GOT+A-P    w32:1      sa GOTPCDBL=21
G+A-P      w32:1      sa GOTENT=26 GOTPLTENT=33
G+A-GOT    h11:0      u  GOT12=6 GOTPLT12=29
G+A-GOT    h15:0      s  GOT16=15 GOTPLT16=30
G+A-GOT    w11:0@16,19:12@8 s GOT20=58 GOTPLT20=59
G+A-GOT    w31:0      s  GOT32=7 GOTPLT32=31
G+A-GOT    d63:0      -  GOT64=24 GOTPLT64=32
TLS0       n          -  TLS_DTPMOD=54
TLSA       n          -  TLS_DTPOFF=55
TLSP       n          -  TLS_TPOFF=56
TLS        -          -  TLS=37..53 TLS_GOTIE20=60
""",
    ),
    SPARC: ("R_SPARC_", _SPARC),
    SPARC32PLUS: ("R_SPARC_", _SPARC),
    SPARCV9: ("R_SPARC_", _SPARC),
    M68K: (
        "R_68K_",
        """
-          -          -  NONE=0
COPY       -          -  COPY=19
S+A        w31:0      -  32=1
S+A        h15:0      x  16=2
S+A        b7:0       x  8=3
S+A-P      w31:0      c  PC32=4 PLT32=13
S+A-P      h15:0      c  PC16=5 PLT16=14
S+A-P      b7:0       c  PC8=6 PLT8=15
G68K       w31:0      -  GOT32=7
G68K       h15:0      s  GOT16=8
G68K       b7:0       s  GOT8=9
G+A-GOT    w31:0      -  GOT32O=10
G+A-GOT    h15:0      s  GOT16O=11
G+A-GOT    b7:0       s  GOT8O=12
S          w31:0      -  GLOB_DAT=20 JMP_SLOT=21
B+A        w31:0      -  RELATIVE=22
TLS0       w31:0      -  TLS_DTPMOD32=40
TLSA       w31:0      -  TLS_DTPREL32=41
TLSP       w31:0      -  TLS_TPREL32=42
TLS        -          -  TLS=25..39
""",
    ),
}
