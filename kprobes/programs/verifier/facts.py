"""Facts that verification has found out about a program: compilers build on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import field, frozen

from ..helpers import Helper
from ..maps import Map
from ..meanings import EITHER, UNSET

#: kind of an access that is of several kinds, on different paths: any address of stack, map value
#: or record
ANY: Final = "any"


@frozen
class Access:
    """The memory that a load, store or atomic operation accesses, on every path that comes there.

    Attributes:
        kind: "ctx", "stack", "map value", "record", "slice" of a dynptr; or "any" where several of
            these but "ctx" come there.
        size: bytes.
        offset: bytes from the region's beginning (of a stack: from r10, negative), the
            instruction's own offset included; None: it varies.
        map: the map of a map value or record; None where several come there.
        frame: number of the frame of "stack": 0 is the running function's, 1 its caller's ..; None
            where it varies.
    """

    kind: str
    size: int
    offset: int | None = None
    map: Map | None = field(default=None, eq=id)
    frame: int | None = None

    def joined(self, other: Access) -> Access:
        """Return the access that holds for this path and another one at the same instruction.

        Kinds that differ become ANY; an offset, map or frame that differs, or is of another kind,
        becomes None.
        """
        if self == other:
            return self
        same = self.kind == other.kind
        return Access(
            self.kind if same else ANY,
            self.size,
            self.offset if same and self.offset == other.offset else None,
            self.map if same and self.map is other.map else None,
            self.frame if same and self.frame == other.frame else None,
        )


@frozen
class HelperCall:
    """A call of a helper, on every path that comes there.

    Attributes:
        helper: which one.
        map: its MAP argument, or the map of its RECORD argument; None: none, or several.
        texts: number of an argument of its format (from 0) that is an address in the program's
            memory -> how many bytes may be read there. EITHER: it is such an address on one path,
            and a number on another. UNSET: nothing was written to it, or it is the context or a
            map. Arguments that are numbers are left out.
    """

    helper: Helper
    map: Map | None = field(default=None, eq=id)
    texts: Mapping[int, int] = field(factory=dict)

    def joined(self, map: Map | None, texts: Mapping[int, int]) -> HelperCall:
        """Return the call that holds for this path and another one at the same instruction.

        Its map is None where the two differ; `texts` has the arguments of both paths.

        Args:
            map: the map that the other path gives to the helper; None: none.
            texts: the other path's `texts`.
        """
        both = {
            n: _joined(self.texts.get(n), texts.get(n)) for n in self.texts.keys() | texts.keys()
        }
        return HelperCall(self.helper, self.map if self.map is map else None, both)


def _joined(one: int | None, other: int | None) -> int:
    """Return what HelperCall.texts has for an argument that differs between two paths, or not.

    Args:
        one: what it is on the first path: bytes that may be read where it points, EITHER or UNSET;
            None: it is a number there.
        other: the same on the second path; not None where `one` is.
    """
    if UNSET in (one, other):
        return UNSET
    if one is None or other is None or EITHER in (one, other):
        return EITHER
    return min(one, other)


@frozen
class Facts:
    """Properties that hold for every run of a program.

    Attributes:
        accesses: slot of a load, store or atomic operation -> what it accesses. Not there: it is
            never reached. With verify(copies=True) also of a call that copies from the context.
        calls: slot of a helper's call -> helper and map. Not there: it is never reached.
        stack: first slot of a function -> bytes of stack that it uses, a multiple of 8.
        cleared: first slot of a function -> as many bytes below r10 have to be zero when it begins,
            since a helper may read some that the program did not write (the padding of a
            structure). Functions that need none are not there.
        depth: bytes of stack of all frames together, at most.
        frames: functions active at a time, at most.
        steps: no run executes more instructions; as many were walked to verify it.
        whole_context: True where the context's address, or a part of it that varies, is used: loads
            of "ctx" with an offset of None.
    """

    accesses: Mapping[int, Access]
    calls: Mapping[int, HelperCall]
    stack: Mapping[int, int]
    cleared: Mapping[int, int]
    depth: int
    frames: int
    steps: int
    whole_context: bool = False
