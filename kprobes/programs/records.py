"""LLVM IR of ring buffers: what maps.ring does, on the same memory. See there for how records lie in it."""

from __future__ import annotations

from string import Template
from typing import Final

DATA: Final = 64  # bytes from the header to the data

#: (ring, bytes, CPU) -> address of a new record's data, or 0: no room. The producer's position is told last.
RESERVE = Template("""
define internal i64 @reserve_$size(i64 %map, i64 %bytes, i64 %cpu) #0 {
entry:
  %m = inttoptr i64 %map to ptr
  %more = add i64 %bytes, 15
  %total = and i64 %more, -8
  %consumer = load atomic i64, ptr %m acquire, align 8
  %pp = getelementptr i8, ptr %m, i64 8
  %producer = load i64, ptr %pp
  %after = add i64 %producer, %total
  %used = sub i64 %after, %consumer
  %full = icmp ugt i64 %used, $size
  br i1 %full, label %none, label %room
none:
  %lp = getelementptr i8, ptr %m, i64 24
  %lost = load i64, ptr %lp
  %lost1 = add i64 %lost, 1
  store i64 %lost1, ptr %lp
  ret i64 0
room:
  %at = and i64 %producer, $mask
  %header = add i64 %at, $data
  %rp = getelementptr i8, ptr %m, i64 %header
  %size32 = trunc i64 %bytes to i32
  %busy = or i32 %size32, -2147483648
  store i32 %busy, ptr %rp
  %cp = getelementptr i8, ptr %rp, i64 4
  %cpu32 = trunc i64 %cpu to i32
  store i32 %cpu32, ptr %cp
  store atomic i64 %after, ptr %pp release, align 8
  %data = getelementptr i8, ptr %rp, i64 8
  %address = ptrtoint ptr %data to i64
  ret i64 %address
}
""")
#: (a record's data, 0 or the bit that discards it): it is complete
COMMIT = """
define internal void @commit(i64 %record, i32 %discard) #0 {
  %header = sub i64 %record, 8
  %p = inttoptr i64 %header to ptr
  %length = load i32, ptr %p
  %ready = and i32 %length, 2147483647
  %now = or i32 %ready, %discard
  store atomic i32 %now, ptr %p release, align 4
  ret void
}
"""
