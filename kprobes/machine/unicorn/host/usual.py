"""Usual hits: what the host's library needs to call a handler by itself. See
kprobes/native/hits.c.

Host code is compiled code of the library's (kprobes/native), which does in this process what Python
would do more slowly. The words are numbers of 64 bits in this process's memory, which host code
reads and writes.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from ....native import words
from ....regs import Regs
from ..._base import UsualEntry, UsualHit, UsualReturn


class SharedHits:
    """The words that all hits of one CPU share (struct hits).

    Attributes:
        address: of its words.
    """

    def __init__(self, regs: Regs, skip: Callable[[int], int] | None) -> None:
        """Make the words.

        Args:
            regs: the CPU's, which handlers get.
            skip: (return address that a function finds) -> where the function returns to, on
                architectures where that differs (Returning.skips); None: it is the same.
        """
        self._places = words("hits")
        self._words = (ctypes.c_uint64 * len(self._places))()
        self._kept: dict[str, object] = {}
        self.address = ctypes.addressof(self._words)
        self._keep(regs=regs, zero=0)
        if skip is not None:
            self._keep(skip=skip)
        self._words[self._places["mode_bits"]] = regs.arch.pointers.mode_bits

    def begin(self, block: object, idle: object, active: object) -> None:
        """Have host code keep the state of hits in a control block.

        Args:
            block: the control block, which is the core's.
            idle: its state while there is no hit.
            active: its state while handlers run.
        """
        if self._kept.get("active") is not active:
            # call_handler() of hits.c puts it into the block without a reference of its own
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(active))
        self._keep(block=block, idle=idle, active=active)

    def _keep(self, **objects: object) -> None:
        """Set words of host code that are Python objects, and keep these alive.

        Args:
            objects: name of a word -> object.
        """
        for name, value in objects.items():
            self._kept[name] = value
            self._words[self._places[name]] = id(value)


class Usual:
    """The words of one place's usual hit (struct usual): a hit at which host code only calls a
    handler.

    They live while the library may be about to use them, and keep what they name as long. Host code
    holds no more than `owner` while it calls a handler.

    Attributes:
        address: of the words.
    """

    def __init__(
        self,
        shared: SharedHits,
        finish: Callable[[Any, Any, BaseException | None], None],
        usual: UsualHit | UsualReturn,
        owner: object | None = None,
    ) -> None:
        """Make the words.

        Args:
            shared: what all hits of the CPU have in common.
            finish: called with (instance of a return probe or None, what the handler has returned,
                what it has raised or None) where the hit is not the usual one; never raises.
            usual: the core's description of the hit, the entry or the return.
            owner: keeps this object as long as it lives; None: this object.
        """
        calls = usual if isinstance(usual, UsualEntry | UsualReturn) else None
        places = words("usual")
        self._words = (ctypes.c_uint64 * len(places))()
        self._kept = {
            "owner": owner or self,
            "probe": usual.probe,
            "handler": usual.handler,
            "finish": finish,
            "pool": None if calls is None else calls.pool,
            "held": None if calls is None else calls.held,
        }
        self.address = ctypes.addressof(self._words)
        self._words[places["hits"]] = shared.address
        if isinstance(usual, UsualReturn):
            self._words[places["asked"]] = usual.asked
        else:
            self._words[places["address"]] = usual.address
        for name, value in self._kept.items():
            self._words[places[name]] = 0 if value is None else id(value)
        del self._kept["owner"]  # a word of its own, no reference
