"""Names of builtins, functions and types that only scripts have."""

from __future__ import annotations

from typing import Final

from . import types
from .types import IntegerType, ValueType

AGGREGATES: Final = frozenset(
    {"count", "sum", "avg", "min", "max", "stats", "hist", "lhist", "tseries"}
)
_U8 = IntegerType(8, False)
_U32 = IntegerType(32, False)
_U64 = IntegerType(64, False)
_I64 = IntegerType(64, True)
_NOTHING = types.VoidType()
_BOOLEAN = types.BooleanType()
#: types that only scripts name
TYPES: Final[dict[str, ValueType]] = {
    "count_t": types.CountType(),
    "sum_t": types.SumType(True),
    "usum_t": types.SumType(False),
    "avg_t": types.AverageType(True),
    "uavg_t": types.AverageType(False),
    "min_t": types.MinimumType(True),
    "umin_t": types.MinimumType(False),
    "max_t": types.MaximumType(True),
    "umax_t": types.MaximumType(False),
    "stats_t": types.StatsType(True),
    "ustats_t": types.StatsType(False),
    "ksym_t": types.SymbolType(False),
    "usym_t": types.SymbolType(True),
    "inet": types.TextType("inet"),
    "timestamp": types.TextType("timestamp"),
    "macaddr_t": types.TextType("mac_address"),
    "username_t": types.TextType("username"),
    "cgroup_path_t": types.TextType("cgroup_path"),
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
    "comm": types.StringType(16),
    "jiffies": _U64,
    "numaid": _U32,
    "usermode": _U8,
    "curtask": _U64,
    "cpid": _U32,
    "has_cpid": _BOOLEAN,
    "probetype": types.StringType(24),
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
_NO_SIGNAL: Final = "no signal is sent to a guest's task"
#: functions that are not supported -> the reason
UNSUPPORTED: Final = {
    "ctx": "registers are read by reg()",
    "signal": _NO_SIGNAL,
    "signal_name": "the numbers of signals are an operating system's",
    "signal_thread": _NO_SIGNAL,
    "strerror": "the numbers of errors are an operating system's",
    "write_user": "programs do not write to the guest's memory",
}
#: functions that have Python do something
ASYNCHRONOUS: Final = frozenset(
    {
        "printf",
        "errorf",
        "warnf",
        "print",
        "clear",
        "zero",
        "exit",
        "time",
        "cat",
        "join",
        "system",
    }
)
#: functions that change the guest, or run programs of the host
UNSAFE: Final = frozenset({"system", "override"})
#: builtins and functions that need a probe in a guest
AT_CODE: Final = frozenset({"func", "retval", "args", "reg", "override"})
#: clocks that nsecs() takes
CLOCKS: Final = ("monotonic", "boot", "tai", "sw_tai")
KNOWN: Final = frozenset(
    {
        *AGGREGATES,
        *SIMPLE,
        *REFUSED,
        *UNSUPPORTED,
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
        "memcmp",
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
        "str_concat",
        "strcap",
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
