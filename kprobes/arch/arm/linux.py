"""Arm's 32-bit processes on Linux."""

from __future__ import annotations

from attrs import evolve

from .._base import Order
from .._linux import CallRules, KernelCode, Linux, MemoryCalls, ThreadStorage

NAMES = (*(f"r{n}" for n in range(11)), "fp", "ip", "sp", "lr", "pc")
VERSION = 5  #: the first that has the exchange of 64 bits
# The kernel's user helpers: Documentation/arch/arm/kernel_user_helpers.rst. A guest has one thread,
# and nothing comes between two of its instructions: neither exclusive accesses nor barriers.
HELPERS = {
    0xFFFF0F60: (  # kuser_cmpxchg64(old, new, word): r0 is 0 and C is set where it was exchanged
        0xE92D0070,  # push {r4, r5, r6}
        0xE8900018,  # ldm r0, {r3, r4}
        0xE8920060,  # ldm r2, {r5, r6}
        0xE0233005,  # eor r3, r3, r5
        0xE0244006,  # eor r4, r4, r6
        0xE1930004,  # orrs r0, r3, r4
        0x08910018,  # ldmeq r1, {r3, r4}
        0x08820018,  # stmeq r2, {r3, r4}
        0xE2703000,  # rsbs r3, r0, #0
        0xE8BD0070,  # pop {r4, r5, r6}
        0xE12FFF1E,  # bx lr
    ),
    0xFFFF0FA0: (0xE12FFF1E,),  # kuser_memory_barrier()
    0xFFFF0FC0: (  # kuser_cmpxchg(old, new, word), as above
        0xE5923000,  # ldr r3, [r2]
        0xE0530000,  # subs r0, r3, r0
        0x05821000,  # streq r1, [r2]
        0xE2703000,  # rsbs r3, r0, #0
        0xE12FFF1E,  # bx lr
    ),
    0xFFFF0FE0: (  # kuser_get_tls()
        0xEE1D0F70,  # mrc p15, 0, r0, c13, c0, 3
        0xE12FFF1E,  # bx lr
    ),
}


def _helpers(order: Order) -> KernelCode:
    """Make the kernel's page of user helpers; instructions are little-endian, its version
    is data.
    """
    code = {
        address: b"".join(word.to_bytes(4, "little") for word in words)
        for address, words in HELPERS.items()
    }
    version = {0xFFFF0FFC: VERSION.to_bytes(4, order.value)}
    return KernelCode(page=0xFFFF0000, size=0x1000, parts=code | version)


ARM = Linux(
    memory=MemoryCalls(code=bytes.fromhex("000000ef"), number="r7", args=("r0", "r1", "r2", "r3", "r4", "r5"),
                       result="r0", map=192, unmap=91),
    calls=CallRules(table="arm", mmap_by_block=True, private={0xF0005: "set_tls"}),
    exits=(1, 248), clone=120,
    # HWCAP_TLS: code that looks there reads the thread pointer's register
    storage=ThreadStorage(register="tpidruro", first=8, read="__aeabi_read_tp", platform=b"v7l",
                          hwcap=1 << 15),
    kernel_code=_helpers(Order.LITTLE), event_names=NAMES)
ROWS = {"arm": ARM, "armeb": evolve(ARM, kernel_code=_helpers(Order.BIG))}
