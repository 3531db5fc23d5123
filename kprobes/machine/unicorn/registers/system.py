"""System registers: those that only an operating system uses, and that no `regs` shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from ....errors import UnknownRegister


@frozen
class ByNumber:
    """A register that the engine's API has.

    Attributes:
        name: its constant's in unicorn's module, without the prefix.
    """

    name: str


@frozen
class ByPlace:
    """A register of a coprocessor, which the engine's API has by its encoding.

    Attributes:
        fields: of unicorn's CP_REG, without the value.
    """

    fields: tuple[int, ...]


@frozen
class ByCode:
    """A register that only instructions reach.

    Attributes:
        register: general register that the instructions use.
        get: instruction that reads the system register into it.
        put: instructions that write it, in a multiple of the instruction size.
    """

    register: str
    get: bytes
    put: bytes


@frozen
class ByField:
    """A part of what the engine's API has as a tuple; it is only read.

    Attributes:
        name: the constant's in unicorn's module, without the prefix.
        index: which item of the tuple.
    """

    name: str
    index: int


SystemRegister = ByNumber | ByPlace | ByCode | ByField


class SystemRegisters:
    """The system registers of a CPU that is between two instructions."""

    def __init__(
        self, uc: Any, constants: Any, prefix: str, rows: Mapping[str, SystemRegister], run: Any
    ) -> None:
        """Look up the engine's numbers of the registers.

        Args:
            uc: the engine.
            constants: module of unicorn with its register numbers.
            prefix: UC_<prefix>_REG_<NAME> is a constant of that module.
            rows: name of a register -> how it is reached.
            run: (general register, value to put there or None, code) executes the code; returns the
                general register's value behind it.
        """
        self._uc = uc
        self._rows = rows
        self._run = run
        self._number = {
            name: getattr(constants, f"UC_{prefix}_REG_{row.name}")
            for name, row in rows.items()
            if isinstance(row, ByNumber | ByField)
        }
        self._place = getattr(constants, f"UC_{prefix}_REG_CP_REG", None)

    def _row(self, name: str) -> SystemRegister:
        """Return how the register that is called `name` is reached.

        Raises:
            UnknownRegister: there is no such register.
        """
        if name not in self._rows:
            raise UnknownRegister(
                f"no system register {name!r}", hint=f"there are {' '.join(self._rows)}"
            )
        return self._rows[name]

    def read(self, name: str) -> int:
        """Return the value of the system register that is called `name`, through the engine's API
        or by executing an instruction.

        Raises:
            UnknownRegister: there is no such register.
            Unsupported: it takes an instruction, which the guest may not execute in its present
                mode.
        """
        row = self._row(name)
        if isinstance(row, ByCode):
            return int(self._run(row.register, None, row.get))
        if isinstance(row, ByPlace):
            return int(self._uc.reg_read(self._place, row.fields))
        value = self._uc.reg_read(self._number[name])
        return int(value[row.index] if isinstance(row, ByField) else value)

    def write(self, name: str, value: int) -> None:
        """Write a system register, through the engine's API or by executing an instruction.
        Registers that can only be read (ByField) stay as they are.

        Args:
            name: of the register.
            value: the new value.

        Raises:
            UnknownRegister: there is no such register.
            Unsupported: it takes an instruction, which the guest may not execute in its present
                mode.
        """
        row = self._row(name)
        if isinstance(row, ByNumber):
            self._uc.reg_write(self._number[name], value)
        elif isinstance(row, ByPlace):
            self._uc.reg_write(self._place, (*row.fields, value))
        elif isinstance(row, ByCode):
            self._run(row.register, value, row.put)
