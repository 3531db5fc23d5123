"""A base class of machines that gives them their debug information, types, views and a repr."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..arguments import checked
from ..errors import Uncopied
from ..notebook import table

if TYPE_CHECKING:
    from ..discover import Found
    from .info import DebugInfo
    from .types import CType
    from .view import View


def _shown(machine: Any) -> str:
    """Return a machine's repr: `<class architecture, number of symbols, symbol at the pc>`, without
    the last where the pc cannot be read.
    """
    try:
        where = f", {machine.symbols.describe(machine.regs.pc)}"
    except Exception:  # closed, or gone
        where = ""
    return f"<{type(machine).__name__} {machine.arch.name}, {len(machine.symbols)} symbols{where}>"


def _table(machine: Any) -> str:
    """Return a machine's first 40 registers as an HTML table; without rows where they cannot be
    read. Jupyter calls it to show a machine.
    """
    try:
        rows = [(name, f"{machine.regs[name]:#x}") for name in machine.regs.names[:40]]
    except Exception:  # closed, or gone
        rows = []
    return table(repr(machine)[1:-1], ("register", "value"), rows)


@checked()
class Described(Uncopied):
    """Base class of machines: what the debug information of their guest's files says."""

    @cached_property
    def debug(self) -> DebugInfo:
        """The debug information of the guest's files: types, variables, lines."""
        from .info import DebugInfo

        machine: Any = self
        return DebugInfo(machine)

    def discover(self) -> tuple[Found, ...]:
        """Find the functions of stripped and raw code; add a symbol, such as `fn_08000123`, for
        each that has none.

        Returns:
            All functions, by address, each with the evidence for it and its length.
        """
        from ..discover import discover

        return discover(self)

    def type(self, name: str) -> CType:
        """Return a type of the guest's by its name in C: "struct table".

        Raises:
            UnknownSymbol: no file with debug information has it.
        """
        return self.debug.type(name)

    def view(self, type: str | CType, address: int) -> View:
        """Return guest memory as C sees it: `m.view("struct table *", address).count`.

        Args:
            type: a type, or its name in C.
            address: of the first byte, in the guest.

        Raises:
            UnknownSymbol: no file with debug information has the type.
        """
        return self.debug.view(type, address)

    __repr__, _repr_html_ = _shown, _table
