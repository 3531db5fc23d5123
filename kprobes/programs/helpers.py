"""Helpers: what programs may call, by Linux's numbers.

`HELPERS[number]` is a `Helper`: the kinds of its arguments (what a verifier checks), what it
returns, and its meaning in Python, `run(call, r1 .. r5) -> int`. All engines end up there: the
interpreter calls it, compiled code has it as a callback, or does the same by itself. Arguments are
registers: unsigned 64-bit integers. The result is any int; engines keep its lower 64 bits (errors
are negative errno).

`ProgramRun` is one run of a program, as helpers see it: memory of the program's own through `read`
and `write` at host addresses (in the interpreter they check, in compiled code the verifier has),
maps by the address that LDDW loaded, and `place`: the guest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from . import isa, meanings
from .call import Arg, Helper, ProgramRun, Ret, RunPlace
from .maps import MapType

_U32: Final = (1 << 32) - 1
_KEYED: Final = frozenset(
    {
        MapType.HASH,
        MapType.ARRAY,
        MapType.PERCPU_HASH,
        MapType.PERCPU_ARRAY,
        MapType.LRU_HASH,
        MapType.LRU_PERCPU_HASH,
        MapType.LPM_TRIE,
    }
)
_LOOKED_UP: Final = _KEYED | {MapType.ARRAY_OF_MAPS, MapType.HASH_OF_MAPS}
_LISTS: Final = frozenset({MapType.QUEUE, MapType.STACK})
_PUSHED: Final = _LISTS | {MapType.BLOOM_FILTER}
_RINGS: Final = frozenset({MapType.RINGBUF})
_USER_RINGS: Final = frozenset({MapType.USER_RINGBUF})
_ERROR: Final = -4095
_STRING: Final = (_ERROR, (1 << 31) - 1)
_OK: Final = (_ERROR, 0)
_LINE: Final = (_ERROR, meanings.LINE)
_EVENTS: Final = frozenset({MapType.PERF_EVENT_ARRAY})
_STACKS: Final = frozenset({MapType.STACK_TRACE})
_STORAGE: Final = frozenset({MapType.TASK_STORAGE})
_TEXT_TO: Final = (Arg.MEM, Arg.SIZE, Arg.SCALAR, Arg.NUMBER_OUT)
_READ: Final = (Arg.MEM_OUT, Arg.SIZE_OR_ZERO, Arg.SCALAR)

_ALL: Final = (
    Helper(
        1, "map_lookup_elem", (Arg.MAP, Arg.KEY), Ret.MAP_VALUE_OR_NULL, meanings.lookup, _LOOKED_UP
    ),
    Helper(
        2,
        "map_update_elem",
        (Arg.MAP, Arg.KEY, Arg.VALUE, Arg.SCALAR),
        Ret.SCALAR,
        meanings.update,
        _KEYED,
        _OK,
    ),
    Helper(
        3, "map_delete_elem", (Arg.MAP, Arg.KEY), Ret.SCALAR, meanings.delete, _KEYED | _STACKS, _OK
    ),
    Helper(4, "probe_read", _READ, Ret.SCALAR, meanings.probe_read, bounds=_OK),
    Helper(5, "ktime_get_ns", (), Ret.SCALAR, meanings.ktime),
    Helper(
        6,
        "trace_printk",
        (Arg.MEM, Arg.SIZE, Arg.ANY, Arg.ANY, Arg.ANY),
        Ret.SCALAR,
        meanings.printk,
        bounds=_LINE,
        formats=True,
    ),
    Helper(7, "get_prandom_u32", (), Ret.SCALAR, meanings.prandom, bounds=(0, _U32)),
    Helper(8, "get_smp_processor_id", (), Ret.SCALAR, meanings.cpu, bounds=(0, _U32)),
    Helper(
        meanings.TAIL_CALL,
        "tail_call",
        (Arg.CTX, Arg.MAP, Arg.SCALAR),
        Ret.SCALAR,
        meanings.tail_call,
        frozenset({MapType.PROG_ARRAY}),
        _OK,
    ),
    Helper(14, "get_current_pid_tgid", (), Ret.SCALAR, meanings.pid_tgid),
    Helper(15, "get_current_uid_gid", (), Ret.SCALAR, meanings.nobody, bounds=(0, 0)),
    Helper(16, "get_current_comm", (Arg.MEM_OUT, Arg.SIZE), Ret.SCALAR, meanings.comm, bounds=_OK),
    Helper(
        25,
        "perf_event_output",
        (Arg.CTX, Arg.MAP, Arg.SCALAR, Arg.MEM, Arg.SIZE_OR_ZERO),
        Ret.SCALAR,
        meanings.perf_output,
        _EVENTS,
        _OK,
    ),
    Helper(
        27,
        "get_stackid",
        (Arg.CTX, Arg.MAP, Arg.SCALAR),
        Ret.SCALAR,
        meanings.stackid,
        _STACKS,
        _STRING,
    ),
    Helper(35, "get_current_task", (), Ret.SCALAR, meanings.task),
    Helper(45, "probe_read_str", _READ, Ret.SCALAR, meanings.probe_read_str, bounds=_STRING),
    Helper(58, "override_return", (Arg.CTX, Arg.SCALAR), Ret.SCALAR, meanings.override, bounds=_OK),
    Helper(
        67,
        "get_stack",
        (Arg.CTX, Arg.MEM_OUT, Arg.SIZE_OR_ZERO, Arg.SCALAR),
        Ret.SCALAR,
        meanings.stack,
        bounds=_STRING,
    ),
    Helper(
        87,
        "map_push_elem",
        (Arg.MAP, Arg.VALUE, Arg.SCALAR),
        Ret.SCALAR,
        meanings.push,
        _PUSHED,
        _OK,
    ),
    Helper(88, "map_pop_elem", (Arg.MAP, Arg.VALUE_OUT), Ret.SCALAR, meanings.pop, _LISTS, _OK),
    Helper(89, "map_peek_elem", (Arg.MAP, Arg.VALUE_OUT), Ret.SCALAR, meanings.peek, _PUSHED, _OK),
    Helper(105, "strtol", _TEXT_TO, Ret.SCALAR, meanings.strtol, bounds=_STRING),
    Helper(106, "strtoul", _TEXT_TO, Ret.SCALAR, meanings.strtoul, bounds=_STRING),
    Helper(112, "probe_read_user", _READ, Ret.SCALAR, meanings.probe_read, bounds=_OK),
    Helper(113, "probe_read_kernel", _READ, Ret.SCALAR, meanings.probe_read, bounds=_OK),
    Helper(114, "probe_read_user_str", _READ, Ret.SCALAR, meanings.probe_read_str, bounds=_STRING),
    Helper(
        115, "probe_read_kernel_str", _READ, Ret.SCALAR, meanings.probe_read_str, bounds=_STRING
    ),
    Helper(118, "jiffies64", (), Ret.SCALAR, meanings.jiffies),
    Helper(125, "ktime_get_boot_ns", (), Ret.SCALAR, meanings.ktime),
    Helper(
        130,
        "ringbuf_output",
        (Arg.MAP, Arg.MEM, Arg.SIZE_OR_ZERO, Arg.SCALAR),
        Ret.SCALAR,
        meanings.ring_output,
        _RINGS,
        _OK,
    ),
    Helper(
        131,
        "ringbuf_reserve",
        (Arg.MAP, Arg.CONST_SIZE, Arg.SCALAR),
        Ret.RECORD_OR_NULL,
        meanings.ring_reserve,
        _RINGS,
    ),
    Helper(132, "ringbuf_submit", (Arg.RECORD, Arg.SCALAR), Ret.VOID, meanings.ring_submit),
    Helper(133, "ringbuf_discard", (Arg.RECORD, Arg.SCALAR), Ret.VOID, meanings.ring_discard),
    Helper(134, "ringbuf_query", (Arg.MAP, Arg.SCALAR), Ret.SCALAR, meanings.ring_query, _RINGS),
    Helper(148, "copy_from_user", _READ, Ret.SCALAR, meanings.probe_read, bounds=_OK),
    Helper(
        156,
        "task_storage_get",
        (Arg.MAP, Arg.SCALAR, Arg.VALUE_OR_NULL, Arg.SCALAR),
        Ret.MAP_VALUE_OR_NULL,
        meanings.storage_get,
        _STORAGE,
    ),
    Helper(
        157,
        "task_storage_delete",
        (Arg.MAP, Arg.SCALAR),
        Ret.SCALAR,
        meanings.storage_delete,
        _STORAGE,
        _OK,
    ),
    Helper(158, "get_current_task_btf", (), Ret.SCALAR, meanings.task),
    Helper(160, "ktime_get_coarse_ns", (), Ret.SCALAR, meanings.ktime),
    Helper(
        165,
        "snprintf",
        (Arg.MEM_OUT, Arg.SIZE_OR_ZERO, Arg.CONST_STR, Arg.ARGUMENTS, Arg.SIZE_OR_ZERO),
        Ret.SCALAR,
        meanings.snprintf,
        bounds=_STRING,
        formats=True,
    ),
    Helper(173, "get_func_ip", (Arg.CTX,), Ret.SCALAR, meanings.func_ip),
    Helper(174, "get_attach_cookie", (Arg.CTX,), Ret.SCALAR, meanings.cookie),
    Helper(
        177,
        "trace_vprintk",
        (Arg.MEM, Arg.SIZE, Arg.ARGUMENTS, Arg.SIZE_OR_ZERO),
        Ret.SCALAR,
        meanings.vprintk,
        bounds=_LINE,
        formats=True,
    ),
    Helper(meanings.MAY_LOOP, "may_loop", (), Ret.SCALAR, meanings.may_loop, bounds=(0, 1)),
    Helper(
        meanings.NEXT_KEY,
        "map_next_key",
        (Arg.MAP, Arg.KEY_OUT, Arg.SCALAR),
        Ret.SCALAR,
        meanings.next_key,
        frozenset({MapType.HASH, MapType.LRU_HASH, MapType.PERCPU_HASH, MapType.LRU_PERCPU_HASH}),
        (0, _U32),
    ),
    Helper(
        meanings.USDT_ARGUMENT,
        "usdt_argument",
        (Arg.CTX, Arg.SCALAR, Arg.MEM_OUT, Arg.SIZE),
        Ret.SCALAR,
        meanings.marker_argument,
        bounds=_OK,
    ),
    Helper(meanings.SESSION_COOKIE, "session_cookie", (), Ret.SESSION, meanings.session_cookie),
    Helper(
        meanings.SESSION_IS_RETURN,
        "session_is_return",
        (),
        Ret.SCALAR,
        meanings.session_is_return,
        bounds=(0, 1),
    ),
    Helper(
        meanings.GUEST_IS_BIG, "guest_is_big", (), Ret.SCALAR, meanings.guest_is_big, bounds=(0, 1)
    ),
    Helper(isa.MISSING, "missing", (), Ret.SCALAR, meanings.missing),
    Helper(208, "ktime_get_tai_ns", (), Ret.SCALAR, meanings.ktime),
    Helper(meanings.WAKE, "wake", (), Ret.SCALAR, meanings.wake, bounds=(0, 0)),
    Helper(
        meanings.CALL_SLOT,
        "call_slot",
        (),
        Ret.SCALAR,
        meanings.call_slot,
        bounds=(0, meanings.SLOTS),
    ),
    Helper(
        197,
        "dynptr_from_mem",
        (Arg.VALUE_MEM, Arg.SIZE_OR_ZERO, Arg.SCALAR, Arg.DYNPTR_OUT),
        Ret.SCALAR,
        meanings.dynptr_from_mem,
        bounds=_OK,
    ),
    Helper(
        198,
        "ringbuf_reserve_dynptr",
        (Arg.MAP, Arg.SCALAR, Arg.SCALAR, Arg.DYNPTR_OUT),
        Ret.SCALAR,
        meanings.ring_reserve_dynptr,
        _RINGS,
        _OK,
    ),
    Helper(
        199,
        "ringbuf_submit_dynptr",
        (Arg.DYNPTR_BACK, Arg.SCALAR),
        Ret.VOID,
        meanings.ring_submit_dynptr,
        _RINGS,
    ),
    Helper(
        200,
        "ringbuf_discard_dynptr",
        (Arg.DYNPTR_BACK, Arg.SCALAR),
        Ret.VOID,
        meanings.ring_discard_dynptr,
        _RINGS,
    ),
    Helper(
        201,
        "dynptr_read",
        (Arg.MEM_OUT, Arg.SIZE_OR_ZERO, Arg.DYNPTR, Arg.SCALAR, Arg.SCALAR),
        Ret.SCALAR,
        meanings.dynptr_read,
        bounds=_OK,
    ),
    Helper(
        202,
        "dynptr_write",
        (Arg.DYNPTR, Arg.SCALAR, Arg.MEM, Arg.SIZE_OR_ZERO, Arg.SCALAR),
        Ret.SCALAR,
        meanings.dynptr_write,
        bounds=_OK,
    ),
    Helper(
        203,
        "dynptr_data",
        (Arg.DYNPTR, Arg.SCALAR, Arg.CONST_SIZE_OR_ZERO),
        Ret.SLICE_OR_NULL,
        meanings.dynptr_data,
    ),
    Helper(
        meanings.DYNPTR_SIZE,
        "dynptr_size",
        (Arg.DYNPTR,),
        Ret.SCALAR,
        meanings.dynptr_size,
        bounds=(0, _U32),
    ),
    Helper(
        meanings.DYNPTR_IS_NULL,
        "dynptr_is_null",
        (Arg.DYNPTR,),
        Ret.SCALAR,
        meanings.dynptr_is_null,
        bounds=(0, 1),
    ),
    Helper(
        meanings.DYNPTR_IS_RDONLY,
        "dynptr_is_rdonly",
        (Arg.DYNPTR,),
        Ret.SCALAR,
        meanings.dynptr_is_rdonly,
        bounds=(0, 0),
    ),
    Helper(
        meanings.DYNPTR_ADJUST,
        "dynptr_adjust",
        (Arg.DYNPTR, Arg.SCALAR, Arg.SCALAR),
        Ret.SCALAR,
        meanings.dynptr_adjust,
        bounds=_OK,
    ),
    Helper(
        meanings.DYNPTR_CLONE,
        "dynptr_clone",
        (Arg.DYNPTR, Arg.DYNPTR_CLONE),
        Ret.SCALAR,
        meanings.dynptr_clone,
        bounds=_OK,
    ),
    Helper(
        meanings.DYNPTR_SLICE,
        "dynptr_slice",
        (Arg.DYNPTR, Arg.SCALAR, Arg.BUFFER_OR_NULL, Arg.CONST_SIZE),
        Ret.READ_SLICE_OR_NULL,
        meanings.dynptr_slice,
    ),
    Helper(
        meanings.DYNPTR_SLICE_RDWR,
        "dynptr_slice_rdwr",
        (Arg.DYNPTR, Arg.SCALAR, Arg.BUFFER_OR_NULL, Arg.CONST_SIZE),
        Ret.SLICE_OR_NULL,
        meanings.dynptr_slice,
    ),
    Helper(
        meanings.USER_RING_BEGIN,
        "user_ringbuf_begin",
        (Arg.MAP,),
        Ret.SCALAR,
        meanings.user_ring_begin,
        _USER_RINGS,
        _OK,
    ),
    Helper(
        meanings.USER_RING_NEXT,
        "user_ringbuf_next",
        (Arg.MAP,),
        Ret.SAMPLE_OR_NULL,
        meanings.user_ring_next,
        _USER_RINGS,
    ),
    Helper(
        meanings.USER_RING_DONE,
        "user_ringbuf_done",
        (Arg.DYNPTR_BACK,),
        Ret.VOID,
        meanings.user_ring_done,
        _USER_RINGS,
    ),
    Helper(
        182,
        "strncmp",
        (Arg.MEM, Arg.SIZE, Arg.CONST_STR),
        Ret.SCALAR,
        meanings.strncmp,
        bounds=(-1, 1),
    ),
)
HELPERS: Final[Mapping[int, Helper]] = {helper.number: helper for helper in _ALL}

__all__ = ["HELPERS", "Arg", "Helper", "ProgramRun", "Ret", "RunPlace"]
