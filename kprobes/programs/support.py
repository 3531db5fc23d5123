"""LLVM IR of what compiled helpers share: functions that the code of a program calls, or that LLVM puts into it."""

from __future__ import annotations

from typing import Final

from .writer import Module

#: (header of the table of blocks, guest address, bytes) -> host address, or 0: no block has all of them. The guest's
#: numbers are only ever compared: a sum of them may wrap, a difference that is too large is not below a size.
_FIND: Final = """
define internal i64 @find(i64 %header, i64 %at, i64 %size) #0 {
entry:
  %h = inttoptr i64 %header to ptr
  %count = load i64, ptr %h ; native
  %h1 = getelementptr i64, ptr %h, i64 1
  %table64 = load i64, ptr %h1 ; native
  %table = inttoptr i64 %table64 to ptr
  br label %next
next:
  %n = phi i64 [0, %entry], [%n1, %no]
  %more = icmp ult i64 %n, %count
  br i1 %more, label %look, label %none
look:
  %i = mul i64 %n, 3
  %p = getelementptr i64, ptr %table, i64 %i
  %start = load i64, ptr %p ; native
  %p1 = getelementptr i64, ptr %p, i64 1
  %bytes = load i64, ptr %p1 ; native
  %off = sub i64 %at, %start
  %in = icmp ult i64 %off, %bytes
  %left = sub i64 %bytes, %off
  %fits = icmp ule i64 %size, %left
  %both = and i1 %in, %fits
  br i1 %both, label %found, label %no
no:
  %n1 = add i64 %n, 1
  br label %next
found:
  %p2 = getelementptr i64, ptr %p, i64 2
  %host = load i64, ptr %p2 ; native
  %there = add i64 %host, %off
  ret i64 %there
none:
  ret i64 0
}
"""
#: (to, from, bytes): a copy of memory that does not overlap
_COPY: Final = """
define internal void @copy(ptr %to, ptr %from, i64 %size) #0 {
entry:
  br label %words
words:
  %n = phi i64 [0, %entry], [%n8, %word]
  %left = sub i64 %size, %n
  %w = icmp uge i64 %left, 8
  br i1 %w, label %word, label %bytes
word:
  %pf = getelementptr i8, ptr %from, i64 %n
  %v = load i64, ptr %pf, align 1 ; native
  %pt = getelementptr i8, ptr %to, i64 %n
  store i64 %v, ptr %pt, align 1 ; native
  %n8 = add i64 %n, 8
  br label %words
bytes:
  %m = phi i64 [%n, %words], [%m1, %byte]
  %b = icmp ult i64 %m, %size
  br i1 %b, label %byte, label %done
byte:
  %qf = getelementptr i8, ptr %from, i64 %m
  %c = load i8, ptr %qf
  %qt = getelementptr i8, ptr %to, i64 %m
  store i8 %c, ptr %qt
  %m1 = add i64 %m, 1
  br label %bytes
done:
  ret void
}
"""
#: (to, bytes)
_CLEAR: Final = """
define internal void @clear(ptr %to, i64 %size) #0 {
entry:
  br label %next
next:
  %n = phi i64 [0, %entry], [%n1, %one]
  %more = icmp ult i64 %n, %size
  br i1 %more, label %one, label %done
one:
  %p = getelementptr i8, ptr %to, i64 %n
  store volatile i8 0, ptr %p
  %n1 = add i64 %n, 1
  br label %next
done:
  ret void
}
"""
#: (to, bytes, guest address, header, the engine, its function that reads memory) -> 0 or -EFAULT
_READ: Final = """
define internal i64 @read(ptr %to, i64 %size, i64 %at, i64 %header, i64 %uc, i64 %reader) #0 {
entry:
  %host = call i64 @find(i64 %header, i64 %at, i64 %size)
  %here = icmp ne i64 %host, 0
  br i1 %here, label %ours, label %ask
ours:
  %from = inttoptr i64 %host to ptr
  call void @copy(ptr %to, ptr %from, i64 %size)
  ret i64 0
ask:
  %some = icmp ne i64 %size, 0
  br i1 %some, label %engine, label %well
engine:
  %f = inttoptr i64 %reader to ptr
  %error = call i32 %f(i64 %uc, i64 %at, ptr %to, i64 %size)
  %ok = icmp eq i32 %error, 0
  br i1 %ok, label %well, label %bad
well:
  ret i64 0
bad:
  call void @clear(ptr %to, i64 %size)
  ret i64 -14
}
"""
#: (function, guest address, to, bytes) -> 0, or something else: a guest's program has the host read, see
#: machine.remote.asking
_ASK: Final = """
define internal i32 @ask(i64 %function, i64 %at, ptr %to, i64 %size) #0 {
  %block = alloca [4 x i64], align 16
  store i64 %at, ptr %block ; native
  %there = ptrtoint ptr %to to i64
  %p1 = getelementptr i64, ptr %block, i64 1
  store i64 %there, ptr %p1 ; native
  %p2 = getelementptr i64, ptr %block, i64 2
  store i64 %size, ptr %p2 ; native
  %p3 = getelementptr i64, ptr %block, i64 3
  store i64 1, ptr %p3 ; native
  %asked = inttoptr i64 %function to ptr
  call void %asked(ptr %block)
  %error = load i64, ptr %p3 ; native
  %given = trunc i64 %error to i32
  ret i32 %given
}
"""
#: The same of a string: its length with the NUL. In pieces that do not cross 256-byte lines, as it may end where a
#: mapping does.
_READ_STRING: Final = """
define internal i64 @read_string(ptr %to, i64 %size, i64 %at, i64 %header, i64 %uc, i64 %reader) #0 {
entry:
  %buffer = alloca [256 x i8], align 16
  %none = icmp eq i64 %size, 0
  br i1 %none, label %nothing, label %begin
nothing:
  ret i64 0
begin:
  %last = sub i64 %size, 1
  br label %next
next:
  %n = phi i64 [0, %begin], [%m, %scanned]
  %more = icmp ult i64 %n, %last
  br i1 %more, label %piece, label %end
piece:
  %here = add i64 %at, %n
  %in = and i64 %here, 255
  %line = sub i64 256, %in
  %left = sub i64 %last, %n
  %short = icmp ult i64 %left, %line
  %count = select i1 %short, i64 %left, i64 %line
  %host = call i64 @find(i64 %header, i64 %here, i64 %count)
  %found = icmp ne i64 %host, 0
  br i1 %found, label %ours, label %engine
ours:
  %direct = inttoptr i64 %host to ptr
  br label %scan
engine:
  %f = inttoptr i64 %reader to ptr
  %error = call i32 %f(i64 %uc, i64 %here, ptr %buffer, i64 %count)
  %ok = icmp eq i32 %error, 0
  br i1 %ok, label %scan, label %bad
scan:
  %from = phi ptr [%direct, %ours], [%buffer, %engine]
  %stop = add i64 %n, %count
  br label %byte
byte:
  %k = phi i64 [0, %scan], [%k1, %on]
  %m = add i64 %n, %k
  %all = icmp uge i64 %m, %stop
  br i1 %all, label %scanned, label %one
one:
  %p = getelementptr i8, ptr %from, i64 %k
  %c = load i8, ptr %p
  %q = getelementptr i8, ptr %to, i64 %m
  store i8 %c, ptr %q
  %k1 = add i64 %k, 1
  %nul = icmp eq i8 %c, 0
  br i1 %nul, label %whole, label %on
on:
  br label %byte
whole:
  %length = add i64 %m, 1
  ret i64 %length
scanned:
  br label %next
end:
  %z = getelementptr i8, ptr %to, i64 %last
  store i8 0, ptr %z
  ret i64 %size
bad:
  call void @clear(ptr %to, i64 %size)
  ret i64 -14
}
"""
#: (the C library's clock_gettime) -> ns of CLOCK_MONOTONIC
_CLOCK: Final = """
define internal i64 @clock(i64 %function) #0 {
  %time = alloca [2 x i64]
  %f = inttoptr i64 %function to ptr
  %error = call i32 %f(i32 1, ptr %time)
  %s = load i64, ptr %time ; native
  %p = getelementptr i64, ptr %time, i64 1
  %ns = load i64, ptr %p ; native
  %sns = mul i64 %s, 1000000000
  %all = add i64 %sns, %ns
  ret i64 %all
}
"""
#: (dividend, divisor, which is not 0), unsigned: a bit at a time
_DIVISION: Final = """
define internal i64 @%(name)s(i64 %%n, i64 %%d) #0 {
entry:
  br label %%next
next:
  %%i = phi i64 [0, %%entry], [%%i1, %%bit]
  %%left = phi i64 [%%n, %%entry], [%%left1, %%bit]
  %%rest = phi i64 [0, %%entry], [%%rest2, %%bit]
  %%quotient = phi i64 [0, %%entry], [%%quotient2, %%bit]
  %%more = icmp ult i64 %%i, 64
  br i1 %%more, label %%bit, label %%done
bit:
  %%i1 = add i64 %%i, 1
  %%top = icmp slt i64 %%left, 0
  %%left1 = shl i64 %%left, 1
  %%over = icmp slt i64 %%rest, 0
  %%shifted = shl i64 %%rest, 1
  %%low = zext i1 %%top to i64
  %%rest1 = or i64 %%shifted, %%low
  %%enough = icmp uge i64 %%rest1, %%d
  %%fits = or i1 %%over, %%enough
  %%less = select i1 %%fits, i64 %%d, i64 0
  %%rest2 = sub i64 %%rest1, %%less
  %%quotient1 = shl i64 %%quotient, 1
  %%one = zext i1 %%fits to i64
  %%quotient2 = or i64 %%quotient1, %%one
  br label %%next
done:
  ret i64 %%%(name)s
}
"""
#: (the engine, its function that reads registers, register) -> value; the engine writes as many bytes as the register
#: has
_REGISTER: Final = """
define internal i64 @register(i64 %uc, i64 %reader, i32 %number) #0 {
  %room = alloca [64 x i8], align 16
  store i64 0, ptr %room ; native
  %f = inttoptr i64 %reader to ptr
  %error = call i32 %f(i64 %uc, i32 %number, ptr %room)
  %value = load i64, ptr %room ; native
  ret i64 %value
}
"""

#: name -> (text, what it calls)
_ALL: Final = {
    "find": (_FIND, ()), "copy": (_COPY, ()), "clear": (_CLEAR, ()), "read": (_READ, ("find", "copy", "clear")),
    "read_string": (_READ_STRING, ("find", "clear")), "register": (_REGISTER, ()), "clock": (_CLOCK, ()),
    "ask": (_ASK, ()),
    **{name: (_DIVISION % {"name": name}, ()) for name in ("quotient", "rest")},
}


def need(module: Module, name: str) -> None:
    """A module calls one of these."""
    text, others = _ALL[name]
    module.need(name, text)
    if module.target.asks and name.startswith("read"):
        need(module, "ask")
    for other in others:
        need(module, other)
