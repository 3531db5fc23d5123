"""LLVM IR of ring buffers: what maps.ring does, on the same memory. See there for how records lie in it."""

from __future__ import annotations

from string import Template
from typing import Final

DATA: Final = 64  # bytes from the header to the data

#: (ring, bytes, CPU) -> address of a new record's data, or 0: no room. The producer's position is told last.
#: $overwrite: 1 where the oldest records make room. A guest may have written over the ring: whatever stands there, this
#: ends, and the record is in it.
RESERVE = Template("""
define internal i64 @reserve_$size$overwrite(i64 %map, i64 %bytes, i64 %cpu) #0 {
entry:
  %m = inttoptr i64 %map to ptr
  %more = add i64 %bytes, 15
  %total = and i64 %more, -8
  %pp = getelementptr i8, ptr %m, i64 8
  %lp = getelementptr i8, ptr %m, i64 24
  %producer = load i64, ptr %pp
  %after = add i64 %producer, %total
  %fits = icmp ule i64 %total, $size
  br i1 %fits, label %look, label %fail
look:
  %consumer = load atomic i64, ptr %m acquire, align 8
  %used = sub i64 %after, %consumer
  %full = icmp ugt i64 %used, $size
  br i1 %full, label %none, label %room
none:
  %held = sub i64 %producer, %consumer
  %sound = icmp ule i64 %held, $size
  %may = and i1 %sound, $overwrite
  br i1 %may, label %oldest, label %fail
oldest:
  %oldest_at = and i64 %consumer, $mask
  %oldest_header = add i64 %oldest_at, $data
  %op = getelementptr i8, ptr %m, i64 %oldest_header
  %length = load i32, ptr %op
  %unfinished = icmp slt i32 %length, 0
  br i1 %unfinished, label %fail, label %evict
evict:
  %bits = lshr i32 %length, 30
  %kept = xor i32 %bits, 1
  %one = zext i32 %kept to i64
  %lost0 = load i64, ptr %lp
  %lost2 = add i64 %lost0, %one
  store i64 %lost2, ptr %lp
  %bytes32 = and i32 %length, 1073741823
  %old = zext i32 %bytes32 to i64
  %old15 = add i64 %old, 15
  %step = and i64 %old15, -8
  %next = add i64 %consumer, %step
  store atomic i64 %next, ptr %m release, align 8
  br label %look
fail:
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
