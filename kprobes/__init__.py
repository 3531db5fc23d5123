"""Linux's kprobes for guest code, on every instruction set."""

from .core.kprobes import Kprobes, Verdict
from .core.probe import DIVERTED, Jprobe, Kprobe, Kretprobe, KretprobeInstance
from .errors import *
from .machine.unicorn import UnicornMachine
