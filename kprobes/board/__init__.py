"""Boards: the memory and the devices around a CPU, described once, as values or in a file.

`Board` is what users make or load; `devices` has the models that come with it, each a page of
Python to copy; `bus` passes the guest's accesses to them; `svd` names registers. Begin with
`_board`.
"""

from ..arch.arm.nvic import Nvic
from ._board import Board, Fitted, Part
from .bus import Bus
from .clint import Clint
from .devices import KINDS, Device, DeviceSettings, Power, Unknown
from .registers import RegisterBank
from .systemcontrol import SystemControl
from .tasks import TaskPointer
from .timers import Sp804
from .uarts import (
    Pl011,
    SimpleUart,
    Stm32F4Usart,
    Stm32L4Usart,
    Uart,
    Uart16550,
    UartSettings,
)
from .wires import InterruptInputs, Wires

__all__ = [
    "KINDS",
    "Board",
    "Bus",
    "Clint",
    "Device",
    "DeviceSettings",
    "Fitted",
    "InterruptInputs",
    "Nvic",
    "Part",
    "Pl011",
    "Power",
    "RegisterBank",
    "SimpleUart",
    "Sp804",
    "Stm32F4Usart",
    "Stm32L4Usart",
    "SystemControl",
    "TaskPointer",
    "Uart",
    "Uart16550",
    "UartSettings",
    "Unknown",
    "Wires",
]
