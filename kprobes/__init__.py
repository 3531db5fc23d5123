"""Linux's kprobes for guest code, on every instruction set.

    from kprobes import Kprobe, Kprobes, UnicornMachine

    m = UnicornMachine.load("examples/demo.x86_64")
    with Kprobes(m) as k:
        k.register_kprobe(Kprobe(symbol_name="crc32", pre_handler=lambda p, regs: print(regs.arg(2))))
        m.call("crc32", 0, b"hello", 5)
"""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from .arch import get as get_arch
from .arch import names as arch_names
from .core.hit.executed import ExecutedElsewhere
from .core.hit.returns import ReturnMissed
from .core.kprobes import Kprobes
from .core.patch.text import TextOverwritten
from .core.probe import DIVERTED, Jprobe, Kprobe, Kretprobe, KretprobeInstance, Probe
from .core.register.listing import Listed
from .core.register.verdict import Verdict
from .debug.arguments import keep_arguments
from .errors import (
    AlreadyRegistered,
    AmbiguousSymbol,
    BadArgument,
    BadLocation,
    Blacklisted,
    EventError,
    Gone,
    GuestFault,
    GuestStopped,
    GuestTimeout,
    ImageError,
    JprobeExists,
    KprobeError,
    MachineBusy,
    MachineClosed,
    NoBreakpoint,
    NoMemory,
    NotAnInstruction,
    NotFunctionEntry,
    NotRegistered,
    NotText,
    OutOfReach,
    ProgramError,
    ReentryError,
    RemoteError,
    TooBig,
    UnknownRegister,
    UnknownSymbol,
    Unprobeable,
    Unsupported,
)
from .machine._base import Fault, Machine, Sink
from .machine.remote import QemuMachine, RemoteMachine
from .machine.remote.turns import ThreadsUnseen
from .machine.unicorn.host.hostcode import SlowHost
from .machine.unicorn.machine import UnicornMachine
from .regs import (
    Regs,
    instruction_pointer,
    kernel_stack_pointer,
    override_function_with_return,
    regs_get_kernel_argument,
    regs_return_value,
)
from .symbols import Symbol, Symbols

if TYPE_CHECKING:
    from .programs.header import bpf_header
    from .programs.program import Program
    from .tracing.trace import Trace

# imported when they are asked for
_LATER = {"Program": "programs.program", "Trace": "tracing.trace", "bpf_header": "programs.header"}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)


try:
    __version__ = version("kprobes")
except PackageNotFoundError:  # run from a checkout that is not installed
    __version__ = "0+unknown"

__all__ = [
    "DIVERTED",
    "AlreadyRegistered",
    "AmbiguousSymbol",
    "BadArgument",
    "BadLocation",
    "Blacklisted",
    "EventError",
    "ExecutedElsewhere",
    "Fault",
    "Gone",
    "GuestFault",
    "GuestStopped",
    "GuestTimeout",
    "ImageError",
    "Jprobe",
    "JprobeExists",
    "Kprobe",
    "KprobeError",
    "Kprobes",
    "Kretprobe",
    "KretprobeInstance",
    "Listed",
    "Machine",
    "MachineBusy",
    "MachineClosed",
    "NoBreakpoint",
    "NoMemory",
    "NotAnInstruction",
    "NotFunctionEntry",
    "NotRegistered",
    "NotText",
    "OutOfReach",
    "Probe",
    "Program",
    "ProgramError",
    "QemuMachine",
    "ReentryError",
    "Regs",
    "RemoteError",
    "RemoteMachine",
    "ReturnMissed",
    "Sink",
    "SlowHost",
    "Symbol",
    "Symbols",
    "TextOverwritten",
    "ThreadsUnseen",
    "TooBig",
    "Trace",
    "UnicornMachine",
    "UnknownRegister",
    "UnknownSymbol",
    "Unprobeable",
    "Unsupported",
    "Verdict",
    "arch_names",
    "bpf_header",
    "get_arch",
    "instruction_pointer",
    "keep_arguments",
    "kernel_stack_pointer",
    "override_function_with_return",
    "regs_get_kernel_argument",
    "regs_return_value",
]
