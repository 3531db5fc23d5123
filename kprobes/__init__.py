"""Linux's kprobes for guest code, on every instruction set.

An example, which prints an argument of each call of crc32:

    from kprobes import Kprobe, Kprobes, UnicornMachine

    def show(p, regs):
        print(regs.arg(2))

    m = UnicornMachine.load("examples/demo.x86_64")
    with Kprobes(m) as k:
        k.register_kprobe(Kprobe(symbol_name="crc32", pre_handler=show))
        m.call("crc32", 0, b"hello", 5)
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "1.0.0rc1"

if TYPE_CHECKING:
    from .arch import get as get_arch
    from .arch import names as arch_names
    from .arch._base import Arch
    from .board import Board
    from .core.hit.executed import ExecutedElsewhere
    from .core.hit.returns import ReturnMissed
    from .core.patch.probepoint import Probepoint
    from .core.patch.text import TextOverwritten
    from .core.probe import DIVERTED, Jprobe, Kprobe, Kretprobe, KretprobeInstance, Probe
    from .core.register.listing import Listed
    from .core.register.shorthand import ProbeUnused, Shorthand
    from .core.register.verdict import Verdict
    from .debug.arguments import keep_arguments
    from .debug.types import CType, Member, VirtualMember
    from .debug.view import View
    from .discover._search import Found
    from .errors import (
        AlreadyRegistered,
        AmbiguousSymbol,
        BadArgument,
        BadLocation,
        Blacklisted,
        EventBusy,
        EventError,
        Gone,
        GuestFault,
        GuestHalted,
        GuestStopped,
        GuestTimeout,
        HeapError,
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
    from .events._armed import TraceEvent
    from .events._files import EventFiles
    from .events._hist import Histogram
    from .events._record import Record
    from .events._table import Events
    from .events._watchpoint import Watchpoint
    from .heap.check import HeapCheck
    from .heap.finding import HeapFinding
    from .kprobes import Kprobes
    from .machine._base import Fault, Machine, ProcessIdentity, Sink
    from .machine._blocks import BlockCounts
    from .machine.remote import QemuMachine, RemoteMachine
    from .machine.remote.threadlock import ThreadsUnseen
    from .machine.unicorn.edgemap import EdgeMap, LastBlocks
    from .machine.unicorn.interrupts import InterruptDelivery
    from .machine.unicorn.machine import UnicornMachine
    from .machine.unicorn.snapshot import Snapshot
    from .machine.unicorn.syscalls import ServedSystemCalls
    from .native import SlowHost
    from .pictures.page import Picture
    from .programs.attach import Attachment
    from .programs.header import bpf_header
    from .programs.maps._base import Map
    from .programs.program import Program
    from .programs.verifier.facts import Facts
    from .regs import (
        Regs,
        instruction_pointer,
        kernel_stack_pointer,
        override_function_with_return,
        regs_get_kernel_argument,
        regs_return_value,
    )
    from .script.script import Script
    from .script.source import ScriptError
    from .stacks import Stack
    from .symbols import SourceLine, Symbol, Symbols
    from .tracing.batches import Row
    from .tracing.coverage import Coverage, Edge
    from .tracing.coverfiles import Block
    from .tracing.graph import CallTree, Graph
    from .tracing.info import EventInfo, Field
    from .tracing.recorder import Recording
    from .tracing.trace import Trace
else:
    # Type checkers do not see this function: to them a name that is not here is an error.
    def __getattr__(name: str) -> object:
        """Import what is asked for first here: see PEP 562."""
        if name in _MODULES:
            return import_module(f"{__name__}.{name}")
        if name not in _HOMES:
            return _former(name)
        module, _, there = _HOMES[name].partition(":")
        globals()[name] = value = getattr(import_module(f"{__name__}.{module}"), there or name)
        return value

    def _former(name: str) -> object:
        """Return what has this former name, and warn; AttributeError where nothing has it."""
        from .deprecation import FORMER, warn

        renamed = FORMER.get(name)
        if renamed is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        warn(f"{__name__}.{name}", renamed, level=3)
        return globals().get(renamed.now) or __getattr__(renamed.now)


#: name of the package -> the module below it where that is, and its name there where it is another
#: one
_HOMES = {
    "arch_names": "arch:names",
    "get_arch": "arch:get",
    "ExecutedElsewhere": "core.hit.executed",
    "ReturnMissed": "core.hit.returns",
    "Kprobes": "kprobes",
    "ProbeUnused": "core.register.shorthand",
    "TextOverwritten": "core.patch.text",
    "DIVERTED": "core.probe",
    "Jprobe": "core.probe",
    "Kprobe": "core.probe",
    "Kretprobe": "core.probe",
    "KretprobeInstance": "core.probe",
    "Probe": "core.probe",
    "Listed": "core.register.listing",
    "Verdict": "core.register.verdict",
    "keep_arguments": "debug.arguments",
    "AlreadyRegistered": "errors",
    "AmbiguousSymbol": "errors",
    "BadArgument": "errors",
    "BadLocation": "errors",
    "Blacklisted": "errors",
    "EventBusy": "errors",
    "EventError": "errors",
    "Gone": "errors",
    "GuestFault": "errors",
    "GuestHalted": "errors",
    "GuestStopped": "errors",
    "GuestTimeout": "errors",
    "HeapError": "errors",
    "ImageError": "errors",
    "JprobeExists": "errors",
    "KprobeError": "errors",
    "MachineBusy": "errors",
    "MachineClosed": "errors",
    "NoBreakpoint": "errors",
    "NoMemory": "errors",
    "NotAnInstruction": "errors",
    "NotFunctionEntry": "errors",
    "NotRegistered": "errors",
    "NotText": "errors",
    "OutOfReach": "errors",
    "ProgramError": "errors",
    "ReentryError": "errors",
    "RemoteError": "errors",
    "TooBig": "errors",
    "UnknownRegister": "errors",
    "UnknownSymbol": "errors",
    "Unprobeable": "errors",
    "Unsupported": "errors",
    "Fault": "machine._base",
    "Machine": "machine._base",
    "Sink": "machine._base",
    "QemuMachine": "machine.remote",
    "RemoteMachine": "machine.remote",
    "ThreadsUnseen": "machine.remote.threadlock",
    "SlowHost": "native",
    "UnicornMachine": "machine.unicorn.machine",
    "bpf_header": "programs.header",
    "Program": "programs.program",
    "Regs": "regs",
    "instruction_pointer": "regs",
    "kernel_stack_pointer": "regs",
    "override_function_with_return": "regs",
    "regs_get_kernel_argument": "regs",
    "regs_return_value": "regs",
    "Symbol": "symbols",
    "Symbols": "symbols",
    "Trace": "tracing.trace",
    "Attachment": "programs.attach",
    "Board": "board",
    "CallTree": "tracing.graph",
    "Coverage": "tracing.coverage",
    "CType": "debug.types",
    "EventFiles": "events._files",
    "Events": "events._table",
    "Graph": "tracing.graph",
    "HeapCheck": "heap.check",
    "HeapFinding": "heap.finding",
    "Record": "events._record",
    "Recording": "tracing.recorder",
    "Script": "script.script",
    "ScriptError": "script.source",
    "Snapshot": "machine.unicorn.snapshot",
    "Stack": "stacks",
    "TraceEvent": "events._armed",
    "View": "debug.view",
    "Watchpoint": "events._watchpoint",
    "Arch": "arch._base",
    "Block": "tracing.coverfiles",
    "BlockCounts": "machine._blocks",
    "Edge": "tracing.coverage",
    "EdgeMap": "machine.unicorn.edgemap",
    "EventInfo": "tracing.info",
    "Field": "tracing.info",
    "Facts": "programs.verifier.facts",
    "Found": "discover._search",
    "Histogram": "events._hist",
    "InterruptDelivery": "machine.unicorn.interrupts",
    "LastBlocks": "machine.unicorn.edgemap",
    "Map": "programs.maps._base",
    "Member": "debug.types",
    "Picture": "pictures.page",
    "Probepoint": "core.patch.probepoint",
    "ProcessIdentity": "machine._base",
    "Row": "tracing.batches",
    "ServedSystemCalls": "machine.unicorn.syscalls",
    "Shorthand": "core.register.shorthand",
    "SourceLine": "symbols",
    "VirtualMember": "debug.types",
}
#: modules that are attributes of the package, as if all of this were imported at its top
_MODULES = {home.partition(".")[0].partition(":")[0] for home in _HOMES.values()}


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, *_MODULES})


__all__ = [
    "DIVERTED",
    "AlreadyRegistered",
    "AmbiguousSymbol",
    "Arch",
    "Attachment",
    "BadArgument",
    "BadLocation",
    "Blacklisted",
    "Block",
    "BlockCounts",
    "Board",
    "CType",
    "CallTree",
    "Coverage",
    "Edge",
    "EdgeMap",
    "EventBusy",
    "EventError",
    "EventFiles",
    "EventInfo",
    "Events",
    "ExecutedElsewhere",
    "Facts",
    "Fault",
    "Field",
    "Found",
    "Gone",
    "Graph",
    "GuestFault",
    "GuestHalted",
    "GuestStopped",
    "GuestTimeout",
    "HeapCheck",
    "HeapError",
    "HeapFinding",
    "Histogram",
    "ImageError",
    "InterruptDelivery",
    "Jprobe",
    "JprobeExists",
    "Kprobe",
    "KprobeError",
    "Kprobes",
    "Kretprobe",
    "KretprobeInstance",
    "LastBlocks",
    "Listed",
    "Machine",
    "MachineBusy",
    "MachineClosed",
    "Map",
    "Member",
    "NoBreakpoint",
    "NoMemory",
    "NotAnInstruction",
    "NotFunctionEntry",
    "NotRegistered",
    "NotText",
    "OutOfReach",
    "Picture",
    "Probe",
    "ProbeUnused",
    "Probepoint",
    "ProcessIdentity",
    "Program",
    "ProgramError",
    "QemuMachine",
    "Record",
    "Recording",
    "ReentryError",
    "Regs",
    "RemoteError",
    "RemoteMachine",
    "ReturnMissed",
    "Row",
    "Script",
    "ScriptError",
    "ServedSystemCalls",
    "Shorthand",
    "Sink",
    "SlowHost",
    "Snapshot",
    "SourceLine",
    "Stack",
    "Symbol",
    "Symbols",
    "TextOverwritten",
    "ThreadsUnseen",
    "TooBig",
    "Trace",
    "TraceEvent",
    "UnicornMachine",
    "UnknownRegister",
    "UnknownSymbol",
    "Unprobeable",
    "Unsupported",
    "Verdict",
    "View",
    "VirtualMember",
    "Watchpoint",
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
