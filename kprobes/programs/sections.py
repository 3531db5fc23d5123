"""Names of an object's sections, libbpf's: they say where in a guest a program belongs."""

from __future__ import annotations

import re
from typing import Final

from attrs import frozen

from .code import Code

#: kind of section -> (what it probes, whether an image stands before the function)
_KINDS: Final = {
    "kprobe": ("entry", False),
    "kretprobe": ("return", False),
    "kprobe.multi": ("entry", False),
    "kretprobe.multi": ("return", False),
    "kprobe.session": ("session", False),
    "ksyscall": ("syscall", False),
    "kretsyscall": ("sysreturn", False),
    "fentry": ("entry", False),
    "fexit": ("return", False),
    "fsession": ("session", False),
    "uprobe": ("entry", True),
    "uretprobe": ("return", True),
    "uprobe.multi": ("entry", True),
    "uretprobe.multi": ("return", True),
    "uprobe.session": ("session", True),
    "usdt": ("marker", True),
}
#: kind of section, or the beginning of several -> what it would need
_REFUSED: Final = {
    "tp": "tracepoints are places in Linux's kernel that its own build declares",
    "tracepoint": "tracepoints are places in Linux's kernel that its own build declares",
    "raw_tp": "raw tracepoints are places in Linux's kernel that its own build declares",
    "raw_tracepoint": "raw tracepoints are places in Linux's kernel that its own build declares",
    "tp_btf": "tracepoints are places in Linux's kernel that its own build declares",
    "perf_event": "perf's events are counted by Linux's kernel",
    "fmod_ret": "it decides on behalf of a function of Linux's kernel: use kprobe and "
    "bpf_override_return()",
    "lsm": "hooks of security modules are Linux's kernel's",
    "iter": "iterators walk through objects of Linux's kernel",
    "xdp": "it sees packets in Linux's kernel",
    "tc": "it sees packets in Linux's kernel",
    "tcx": "it sees packets in Linux's kernel",
    "classifier": "it sees packets in Linux's kernel",
    "action": "it sees packets in Linux's kernel",
    "netfilter": "it sees packets in Linux's kernel",
    "netkit": "it sees packets in Linux's kernel",
    "socket": "it sees packets in Linux's kernel",
    "sockops": "sockets are Linux's kernel's",
    "sk_": "sockets are Linux's kernel's",
    "cgroup": "control groups are Linux's kernel's",
    "lwt_": "it sees packets in Linux's kernel",
    "flow_dissector": "it sees packets in Linux's kernel",
    "lirc": "infrared receivers are Linux's kernel's",
    "struct_ops": "it takes the place of functions of Linux's kernel",
    "syscall": "it runs on behalf of bpf(2), a system call of Linux's",
    "freplace": "it takes the place of another program's function",
    "hid": "input devices are Linux's kernel's",
}
_OFFSET: Final = re.compile(r"(.+)\+(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)")
_GLOB: Final = re.compile(r"[*?\[]")


@frozen
class SectionTarget:
    """The place where a section says that its program belongs.

    Attributes:
        on: "entry", "return", "session" (both), "syscall" and "sysreturn" (a function that serves a
            system call), "marker" (a static tracepoint).
        function: name of the function, of the system call, or of the static tracepoint; or a glob.
        offset: bytes from the function's beginning to the probe.
        image: name or path of the file that the function is in; "": any.
        provider: provider of a static tracepoint.
        listed: True where the context is fentry's list: the arguments, and at a return the result
            behind them, 64 bits each.
    """

    on: str
    function: str
    offset: int = 0
    image: str = ""
    provider: str = ""
    listed: bool = False

    @property
    def many(self) -> bool:
        """True where it may mean several places: a static tracepoint, or a glob."""
        return self.on == "marker" or bool(_GLOB.search(self.function))


def target_of(code: Code) -> SectionTarget | None:
    """Return where a program's section says that the program belongs.

    Args:
        code: the program.

    Returns:
        None: the section names nothing to be probed, as of a program that is attached by hand: it
        has no "/", or begins with "?".

    Raises:
        ProgramError: it names something that guests do not have, or is written wrongly.
    """
    section = code.section
    kind, slash, rest = section.removeprefix("?").partition("/")
    kind = kind.removesuffix(".s")
    known = _KINDS.get(kind)
    if known is None and section:
        reason = _REFUSED.get(kind) or next(
            (why for name, why in _REFUSED.items() if kind.startswith(name)), ""
        )
        raise code.error(
            f"is for something else than a probe of a guest{f': {reason}' if reason else ''}",
            hint='use SEC("kprobe/function+offset"), SEC("kretprobe/function"), '
            'SEC("uprobe/FILE:function") or SEC("usdt/FILE:provider:name"), or attach it by hand',
        )
    if known is None or section.startswith("?") or not slash:
        return None
    on, in_image = known
    listed = kind in ("fentry", "fexit", "fsession")
    image = provider = ""
    if on == "marker":
        image, provider, function = _words(code, rest, 3)
        return SectionTarget(on, function, 0, image, provider)
    if in_image and ":" in rest:
        image, function = _words(code, rest, 2)
    else:
        function = rest
    match = _OFFSET.fullmatch(function)
    if match is None and "+" in function:
        raise code.error(
            "is for something else than a probe of a guest: its offset is no number",
            hint=f'use SEC("{kind}/function+8")',
        )
    offset = 0
    if match is not None:
        function, text = match.groups()
        offset = int(text, 8 if text.isdecimal() and text.startswith("0") else 0)
    if offset and on != "entry":
        raise code.error(
            "is for a return at an offset", hint="returns are probed by the function's name alone"
        )
    if not function:
        raise code.error(
            "names no function", hint=f'use SEC("{kind}/{"FILE:" if in_image else ""}function")'
        )
    return SectionTarget(on, function, offset, image, provider, listed)


def _words(code: Code, text: str, count: int) -> list[str]:
    """Split a section's "FILE:function" or "FILE:provider:name" at its last colons.

    Args:
        code: the program, for the error.
        text: what stands behind the section's kind; the file's path may have colons, too.
        count: how many words there must be: 2 or 3.

    Raises:
        ProgramError: there are fewer words, or one behind the first is empty.
    """
    words = text.rsplit(":", count - 1)
    if len(words) != count or not all(words[1:]):
        form = "FILE:function" if count == 2 else "FILE:provider:name"
        raise code.error(
            f"says {text!r} where {form} is expected",
            hint=f'use SEC("{code.section.partition("/")[0]}/{form}"), or attach it by hand',
        )
    return words
