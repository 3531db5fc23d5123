"""Guests behind a stub that speaks the GDB remote protocol: QEMU, gdbserver, OpenOCD, simulators."""

from .launch import QemuMachine
from .machine import RemoteMachine

__all__ = ["QemuMachine", "RemoteMachine"]
