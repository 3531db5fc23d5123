"""Every exception of the library.

One class per reason, each with the errno that Linux returns for it; the facts are attributes and
the message ends with what to do. A refused call has changed nothing: not the guest, not the probe,
not the batch.
"""

from __future__ import annotations

import errno as E
from typing import Any

from .controls import CONTROLS


class KprobeError(OSError):
    """Base of every refusal.

    Attributes:
        errno: the number Linux would return (positive).
        address: guest address concerned, or None.
        symbol: symbol name as the user gave it, or None.
        reason: one clause that says what is wrong.
        plain: the message without what only a Python program can do about it; the command prints
            this.
    """

    code = E.EINVAL

    def __init__(
        self,
        reason: str,
        *,
        address: int | None = None,
        symbol: str | None = None,
        hint: str = "",
        python: str = "",
        command: str = "",
    ) -> None:
        """Make an error whose text is "symbol at address: reason; hint, python".

        Args:
            reason: what is wrong, as a clause.
            address: of the guest, that it is about; None: about none.
            symbol: that it is about; None: about none.
            hint: what to do about it.
            python: what else to do in a Python program; the message has it, `plain` has not.
            command: what else to do on the command line; `plain` has it, the message has not.
        """
        self.reason = reason
        self.hint = hint
        self.address = address
        self.symbol = symbol
        where = str(symbol).translate(CONTROLS) if symbol is not None else ""
        if address is not None:
            where = f"{where} at {address:#x}" if where else f"{address:#x}"
        text = f"{where}: {reason}" if where else reason
        advice = ", ".join(filter(None, (hint, command)))
        self.plain = f"{text}; {advice}" if advice else text
        super().__init__(
            self.code, "; ".join(filter(None, (text, ", ".join(filter(None, (hint, python))))))
        )

    def __str__(self) -> str:
        return str(self.strerror)

    def __reduce__(self) -> Any:
        """Make copies and pickles of every class possible, whatever its constructor takes.

        Errors come out of other processes (`kprobes.campaign`).
        """
        return _unpickled, (type(self), self.args, self.strerror, self.__dict__)


def _unpickled(
    cls: type[KprobeError], args: tuple[Any, ...], said: str, state: dict[str, Any]
) -> KprobeError:
    """Make a copy of an error without calling its constructor, for copy and pickle.

    Args:
        cls: the error's class.
        args: of OSError: errno and text.
        said: the text that str() of the error gives.
        state: the error's attributes.
    """
    error = cls.__new__(cls)
    OSError.__init__(error, *args)
    error.strerror = said
    error.__dict__.update(state)
    return error


class BadLocation(KprobeError):
    """Both or neither of symbol and address were given, or the offset makes no sense (EINVAL)."""


class UnknownSymbol(KprobeError):
    """No such symbol, or the address lies in no symbol (ENOENT); the message suggests near
    names.
    """

    code = E.ENOENT


class AmbiguousSymbol(KprobeError):
    """The name stands for several addresses (EADDRNOTAVAIL); `addresses` lists them."""

    code = E.EADDRNOTAVAIL

    def __init__(
        self, name: str, addresses: tuple[int, ...], modules: tuple[str, ...] = ()
    ) -> None:
        """Make the error.

        Args:
            name: the name.
            addresses: that have it, ascending.
            modules: the images that have it; the hint names them if there are several.
        """
        self.addresses = addresses
        listed = ", ".join(f"{a:#x}" for a in addresses)
        super().__init__(
            f"names {len(addresses)} addresses ({listed})",
            symbol=name,
            hint=f"write {' or '.join(f'{module}:{name}' for module in modules)}"
            if len(modules) > 1 and all(modules)
            else "use module:symbol",
            python="or addr=",
        )


class NotText(KprobeError):
    """The address is not in executable guest memory (EINVAL)."""


class Blacklisted(KprobeError):
    """The address or its function is on the blacklist (EINVAL)."""


class NotAnInstruction(KprobeError):
    """The address is not the first byte of an instruction (EILSEQ)."""

    code = E.EILSEQ


class Unprobeable(KprobeError):
    """The architecture refuses this instruction (EINVAL); `reason` is the decode row's."""


class AlreadyRegistered(KprobeError):
    """A probe object is registered that is registered already (EINVAL)."""


class NotRegistered(KprobeError):
    """The probe is not registered with this subsystem (EINVAL)."""


class Gone(KprobeError):
    """The probed text was unloaded (EINVAL)."""


class NotFunctionEntry(KprobeError):
    """Return probes and jprobes sit on function entries only (EINVAL)."""


class JprobeExists(KprobeError):
    """A jprobe is on this function already (EEXIST)."""

    code = E.EEXIST


class TooBig(KprobeError):
    """A size is beyond its limit (E2BIG)."""

    code = E.E2BIG


class OutOfReach(KprobeError):
    """A displacement does not reach (ERANGE)."""

    code = E.ERANGE


class Unsupported(KprobeError):
    """The architecture or the engine lacks a power (EOPNOTSUPP); the message names both."""

    code = E.EOPNOTSUPP


class Uncopied:
    """An object that stands for something outside of Python: copy.copy(), copy.deepcopy() and
    pickle of it are refused.
    """

    __slots__ = ()

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Refuse a copy. Raises Unsupported."""
        raise Unsupported(
            f"a {type(self).__name__} cannot be copied or pickled",
            hint="a guest's state is kept by machine.snapshot(); elsewhere make another "
            "machine of the "
            "same file",
        )


class NoMemory(KprobeError):
    """Guest address space for slots or stacks is exhausted (ENOMEM)."""

    code = E.ENOMEM


class ReentryError(KprobeError):
    """A third level of nesting, a return without an instance: the control block cannot go on
    (EBUSY).
    """

    code = E.EBUSY


class RemoteError(KprobeError):
    """A remote stub has ended, does not answer, answers wrongly or refuses (EIO). The machine
    behind it can be used further only if the message says so.
    """

    code = E.EIO


class NoBreakpoint(RemoteError):
    """A stub has no breakpoint left for a place (ENOSPC): in memory that cannot be written (flash,
    ROM) a processor has only a few. The machine can be used further.
    """

    code = E.ENOSPC


class EventError(KprobeError):
    """A kprobe event that does not parse.

    Attributes:
        event: the text.
        position: 0-based column of the offending word.
        kind: Linux's error name (BAD_REG_NAME, ...).
    """

    def __init__(self, kind: str, message: str, event: str, position: int) -> None:
        """Make an error about a place in an event's text.

        Args:
            kind: Linux's error name.
            message: what is wrong, and what to do.
            event: the text of the event.
            position: 0-based column of the offending word.
        """
        self.kind = kind
        self.event = event
        self.position = position
        super().__init__(message)
        self.plain = str(self)

    def __str__(self) -> str:
        return f"{self.reason}\n  {self.event}\n  {' ' * self.position}^"


class EventBusy(KprobeError):
    """An event cannot be deleted by a line for kprobe_events while it is enabled, or has triggers
    (EBUSY).
    """

    code = E.EBUSY


class BadArgument(KprobeError, TypeError, ValueError):
    """A value that a call or a setting cannot take (EINVAL): an argument that is no integer or
    wider than the guest's registers, a handler that cannot be called, a switch that is neither on
    nor off.
    """


class UnknownRegister(KprobeError, KeyError):
    """The architecture has no register of this name, or the machine does not show it; the message
    says which, and what there is.
    """


class ImageError(KprobeError):
    """A file that cannot be loaded: truncated, not ELF, foreign architecture, unsupported
    relocation (ENOEXEC).
    """

    code = E.ENOEXEC


class GuestFault(KprobeError):
    """The guest did something it may not (EFAULT).

    Attributes:
        address: the address accessed (or the instruction's, when it is the instruction that is at
            fault).
        pc: address of the faulting instruction: the original one, even when a copy of it ran in a
            slot.
        access: "read", "write", "fetch", "undefined", "trap", "interrupt", "arithmetic" or
            "engine".
        symbol: "name+0xoff" of pc, or None.
        number: the engine's interrupt number where there is one.
    """

    code = E.EFAULT

    def __init__(
        self,
        reason: str,
        *,
        address: int | None = None,
        pc: int | None = None,
        access: str = "engine",
        symbol: str | None = None,
        number: int | None = None,
        serve: str = "",
        command: str = "",
        by_python: bool = False,
    ) -> None:
        """Make an error whose text is "reason (pc ADDRESS SYMBOL); what to do", or
        "ADDRESS: reason" where Python has asked.

        Args:
            reason: what the guest did, as a clause.
            address: the address accessed; None: not known.
            pc: address of the faulting instruction; None: not known.
            access: "read", "write" or another kind, as the attribute lists them.
            symbol: "name+0xoff" of pc; None: not known.
            number: the engine's interrupt number; None: there is none.
            serve: what a Python program can do so that the guest goes on; the message has it,
                `plain` has not. "": of an interrupt, that is machine.interrupt_handler.
            command: what to do on the command line; `plain` has it, the message has not.
            by_python: True where no instruction of the guest has accessed `address`.
        """
        self.pc = pc
        self.access = access
        self.number = number
        place = f" {symbol}" if symbol else ""
        at = "" if pc is None else f" (pc {pc:#x}{place})"
        if not serve and access == "interrupt":
            serve = "set machine.interrupt_handler to serve it"
        shown = f"{serve}{', ' if serve else ''}m.regs shows the guest where it stopped"
        if by_python:
            super().__init__(f"{address or 0:#x}: {reason}", command=command)
        else:
            super().__init__(f"{reason}{at}", python=shown, command=command)
        self.reason = reason
        self.address = address
        self.symbol = symbol


class GuestHalted(GuestFault):
    """The guest waits for an interrupt (WFI, HLT), and none will ever come (EFAULT).

    Attributes:
        pc: address behind the instruction that waits.
        access: "halt".
    """

    def __init__(self, *, pc: int, symbol: str | None = None) -> None:
        super().__init__(
            "the guest halted, and nothing wakes it",
            address=pc,
            pc=pc,
            access="halt",
            symbol=symbol,
            serve="m.interrupts.pend(n) makes an interrupt pending",
        )


class GuestTimeout(KprobeError):
    """A bounded run reached its bound (ETIMEDOUT); `pc` is the next instruction, m.regs are the
    guest's as it stopped.
    """

    code = E.ETIMEDOUT

    def __init__(self, reason: str, *, pc: int) -> None:
        self.pc = pc
        super().__init__(reason, address=pc, hint="raise the bound", python="or go on with m.run()")


class GuestStopped(KprobeError):
    """A guest call was ended by m.stop() and has no result (EINTR); `pc` is the next instruction,
    m.regs are the guest's as it stopped.
    """

    code = E.EINTR

    def __init__(self, *, pc: int) -> None:
        self.pc = pc
        super().__init__("the call was stopped", address=pc, python="go on with m.run()")


class HeapError(KprobeError):
    """A heap check that raises has found a mistake of the guest's (EFAULT); `finding` is what it
    has found.
    """

    code = E.EFAULT

    def __init__(self, finding: Any) -> None:
        self.finding = finding
        super().__init__(finding.headline, python="print the error's `finding` for its stacks")


class MachineBusy(KprobeError):
    """Another thread runs this machine (EBUSY): one thread at a time."""

    code = E.EBUSY


class MachineClosed(KprobeError):
    """The machine is closed (EBADF): neither it nor its registers can be used any more."""

    code = E.EBADF


class ProgramError(KprobeError):
    """A probe program that cannot be loaded, is not safe, or does not fit where it shall run
    (EINVAL).

    Attributes:
        program: its name, or the file's.
        section: the object's section, or None.
        instruction: slot in the program, or None.
        text: the instruction, disassembled.
        line: `"file:line: source text"` where the object has source lines.
    """

    def __init__(
        self,
        reason: str,
        *,
        program: str | None = None,
        section: str | None = None,
        instruction: int | None = None,
        text: str = "",
        line: str | None = None,
        hint: str = "",
    ) -> None:
        self.program = program
        self.section = section
        self.instruction = instruction
        self.text = text
        self.line = line
        where = []
        if section:
            where.append(f"section {section}")
        if instruction is not None:
            shown = f" ({text})" if text else ""
            where.append(f"instruction {instruction}{shown}")
        super().__init__(
            f"{reason} ({', '.join(where)})" if where else reason, symbol=program, hint=hint
        )
        if line:
            self.plain = f"{self.plain}\n  {line}"
            self.strerror = f"{self.strerror}\n  {line}"
        self.reason = reason
