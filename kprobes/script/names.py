"""Names of builtins, functions and types that only scripts have."""

from __future__ import annotations

from typing import Final

from . import types
from .types import Integer, ValueType

AGGREGATES: Final = frozenset(
    {"count", "sum", "avg", "min", "max", "stats", "hist", "lhist", "tseries"}
)
_U8 = Integer(8, False)
_U32 = Integer(32, False)
_U64 = Integer(64, False)
_I64 = Integer(64, True)
_NOTHING = types.Nothing()
_BOOLEAN = types.Boolean()
#: types that only scripts name
TYPES: Final[dict[str, ValueType]] = {
    "count_t": types.Count(),
    "sum_t": types.Sum(True),
    "usum_t": types.Sum(False),
    "avg_t": types.Average(True),
    "uavg_t": types.Average(False),
    "min_t": types.Minimum(True),
    "umin_t": types.Minimum(False),
    "max_t": types.Maximum(True),
    "umax_t": types.Maximum(False),
    "stats_t": types.Stats(True),
    "ustats_t": types.Stats(False),
    "ksym_t": types.Symbol(False),
    "usym_t": types.Symbol(True),
    "inet": types.Text("inet"),
    "timestamp": types.Text("timestamp"),
    "macaddr_t": types.Text("mac_address"),
    "username_t": types.Text("username"),
    "cgroup_path_t": types.Text("cgroup_path"),
}
#: builtins without arguments -> their types
SIMPLE: Final[dict[str, ValueType]] = {
    "pid": _U32,
    "tid": _U32,
    "nsecs": _U64,
    "elapsed": _U64,
    "cpu": _U64,
    "ncpus": _U64,
    "rand": _U32,
    "uid": _U64,
    "gid": _U64,
    "comm": types.String(16),
    "jiffies": _U64,
    "numaid": _U32,
    "usermode": _U8,
    "curtask": _U64,
    "cpid": _U32,
    "has_cpid": _BOOLEAN,
    "probetype": types.String(24),
    "default_str_length": _U64,
}
#: names with and without parentheses that have no meaning here -> the reason
REFUSED: Final = {
    "cgroup": "control groups are Linux's",
    "cgroupid": "control groups are Linux's",
    "cgroup_path": "control groups are Linux's",
    "username": "user names are an operating system's",
    "socket_cookie": "sockets are Linux's",
    "skboutput": "packets of the network are Linux's",
    "path": "a struct path belongs to Linux's kernel",
    "percpu_kaddr": "per-CPU symbols are Linux's",
    "kfunc_exist": "kernel functions for programs are Linux's",
    "kfunc_allowed": "kernel functions for programs are Linux's",
    "debugf": "there is no trace pipe here: use printf",
    "dw_ustack": "ustack unwinds by debug information already",
    "ppid": "a parent process is Linux's kernel's",
    "pcomm": "a parent process is Linux's kernel's",
    "leader_comm": "a thread group is Linux's kernel's",
    "leader_tid": "a thread group is Linux's kernel's",
    "unwatch": "a watchpoint goes with its script",
}
#: functions that have Python do something
ASYNCHRONOUS: Final = frozenset(
    {"printf", "errorf", "warnf", "print", "clear", "zero", "exit", "time", "join", "cat", "system"}
)
#: functions that change the guest, or run programs of the host
UNSAFE: Final = frozenset({"system", "signal", "signal_thread", "override", "write_user"})
#: builtins and functions that need a probe in a guest
AT_CODE: Final = frozenset({"func", "retval", "args", "reg", "ctx", "override"})
#: clocks that nsecs() takes
CLOCKS: Final = ("monotonic", "boot", "tai", "sw_tai")
KNOWN: Final = frozenset(
    {
        *AGGREGATES,
        *SIMPLE,
        *REFUSED,
        *ASYNCHRONOUS,
        *UNSAFE,
        *AT_CODE,
        "str",
        "buf",
        "kaddr",
        "uaddr",
        "ksym",
        "usym",
        "ntop",
        "pton",
        "macaddr",
        "strftime",
        "strncmp",
        "strcontains",
        "strlen",
        "strstr",
        "len",
        "has_key",
        "delete",
        "find",
        "bswap",
        "kptr",
        "uptr",
        "assert",
        "static_assert",
        "fail",
        "is_str",
        "is_ptr",
        "is_array",
        "is_integer",
        "is_unsigned_integer",
        "is_literal",
        "is_err",
        "memcmp",
        "str_concat",
        "strcap",
        "strerror",
        "signal_name",
        "container_of",
        "getopt",
        "probe",
        "kstack",
        "ustack",
        "config",
        "probetype",
        "assert_str",
    }
)
