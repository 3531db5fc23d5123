"""Probes that a guest has, as `-l` and `-lv` list them."""

import fnmatch
import glob
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

import attrs

from ..names import name_matcher
from .points import Point, joined_name, split

_COMMA: Final = re.compile(r',(?=(?:[^"]*"[^"]*")*[^"]*$)')  #: outside of double quotes
_TIMERS: Final = ("hz:", "ms:", "s:", "us:")
_KERNEL: Final = ("fentry", "fexit", "kprobe", "kretprobe")
_USER: Final = ("uprobe", "uretprobe", "usdt")
#: Kinds of probes that a search can name, by all of their names.
_KINDS: Final[Mapping[str, str]] = {
    **{kind: kind for kind in (*_KERNEL, *_USER, "interval", "profile", "self")},
    "f": "fentry",
    "fr": "fexit",
    "i": "interval",
    "k": "kprobe",
    "kr": "kretprobe",
    "p": "profile",
    "u": "uprobe",
    "ur": "uretprobe",
    "U": "usdt",
}


class ProgramNames(Protocol):
    """The functions of a program, as its file names them."""

    def functions(self) -> Sequence[tuple[str, int]]:
        """Return name and address of each function."""

    def markers(self) -> Sequence[tuple[str, str]]:
        """Return provider and name of each statically defined marker."""

    def parameters(self, address: int) -> Sequence[str]:
        """Return the parameters of the function at `address` as C declares them: `int* n`."""

    def result(self, address: int) -> str:
        """Return the type of the result of the function at `address`; "": it has none, or it is not
        known.
        """


class MachineNames:
    """The names of a program, or of a library, that a machine has loaded."""

    def __init__(self, machine: Any, fits: Callable[[str], bool] = lambda module: True) -> None:
        """Prepare.

        Args:
            machine: the machine, which has `symbols` and `debug`.
            fits: (module of a symbol) -> True where the symbol is one of the program's.
        """
        self._machine = machine
        self._fits = fits

    def functions(self) -> Sequence[tuple[str, int]]:
        """Return (name, address) of each function of the program."""
        return [
            (symbol.name, symbol.address)
            for symbol in self._machine.symbols
            if symbol.kind in ("func", "ifunc") and self._fits(symbol.module)
        ]

    def markers(self) -> Sequence[tuple[str, str]]:
        """Return (provider, name) of each static tracepoint of the program."""
        return [
            (marker.provider, marker.name)
            for marker in self._machine.debug.markers()
            if self._fits(marker.module)
        ]

    def parameters(self, address: int) -> Sequence[str]:
        """Return the parameters of the function at an address as C declares them: `int* n`; none
        where they are not known.
        """
        found = self._machine.debug.parameters(address) or []
        return [f"{_declared(each.type.name)} {each.name}" for each in found]

    def result(self, address: int) -> str:
        """Return the type of the result of the function at an address; "": it has none, or it is
        not known.
        """
        found = self._machine.debug.result(address)
        return "" if found is None or found.kind == "void" else _declared(found.name)


def _declared(name: str) -> str:
    """Return a type's name as it stands in front of a parameter's: `int*`."""
    return name.replace(" *", "*")


@attrs.frozen
class ListedProgram:
    """A program or library whose probes are listed.

    Attributes:
        path: its path, as the user wrote it.
        names: what its file says.
    """

    path: str
    names: ProgramNames


def programs_of(machine: Any, path: str) -> list[ListedProgram]:
    """Return the program that a machine has loaded, then the libraries that were loaded with it.

    Args:
        machine: the machine, which has `symbols` and `debug`.
        path: the program's path, as the user wrote it.
    """
    libraries = {file.module: file.path for file in machine.debug.files if file.module}
    out = [ListedProgram(path, MachineNames(machine, lambda module: module not in libraries))]
    for name, file in libraries.items():
        out.append(ListedProgram(file or name, MachineNames(machine, name.__eq__)))
    return out


@attrs.frozen
class ListedProbe:
    """A line of a list, and those under it.

    Attributes:
        text: the probe, ready to be used in a script.
        parameters: declarations of what the probe has, which `-lv` shows: the function's
            parameters, and `retval` at fexit.
    """

    text: str
    parameters: tuple[str, ...] = ()


def looks_like_a_missing_file(search: str) -> bool:
    """Return True where a search pattern was probably meant as the name of a script's file."""
    return "." in search and ":" not in search and "*" not in search


def missing_file_warning(search: str) -> str:
    """Return the warning about a search pattern that was probably meant as a file's name.

    Args:
        search: the pattern, for which looks_like_a_missing_file() is True.
    """
    return (
        f"WARNING: It appears that '{search}' is a filename but the file does not exist. "
        f"Treating '{search}' as a search pattern."
    )


def lines(probes: Iterable[ListedProbe], verbose: bool) -> Iterator[str]:
    """Yield the lines that show probes.

    Args:
        probes: the probes, in order.
        verbose: True adds the parameters.
    """
    for probe in probes:
        yield probe.text
        if verbose:
            yield from (f"    {parameter}" for parameter in probe.parameters)


class Listing:
    """Lists the probes of a guest, and of files that a search names."""

    def __init__(
        self,
        guest: ListedProgram | None,
        load: Callable[[str], ProgramNames],
        ignored: tuple[type[Exception], ...] = (OSError,),
        libraries: Sequence[ListedProgram] = (),
    ) -> None:
        """Prepare.

        Args:
            guest: the program that would run; None if there is none.
            load: returns the names of a program's file. Raises OSError or KprobeError if the file
                is none.
            ignored: the exceptions of `load` that leave a file out which only a glob names.
            libraries: what is loaded together with the guest.
        """
        self._guest = guest
        self._loaded = [*([] if guest is None else [guest]), *libraries]
        self._load = load
        self._ignored = ignored

    def search(self, pattern: str) -> list[ListedProbe]:
        """Return the probes that fit a pattern such as `uprobe:./a.out:ma*,interval:*`.

        Raises:
            OSError, KprobeError: a file that is named without a glob cannot be loaded.
        """
        found: list[ListedProbe] = []
        for part in _COMMA.split(pattern):
            found += self._search_one(" ".join(part.split()))
        return found

    def _search_one(self, pattern: str) -> Iterator[ListedProbe]:
        """Yield the probes that fit one pattern, `KIND:WORD:...` or only a name, kind by kind."""
        if ":" not in pattern:
            pattern = f"*:{pattern or '*'}"
        kind_pattern, _, rest = pattern.partition(":")
        words = split(rest) if rest else ["*"]
        for kind in sorted(set(_KINDS.values())):
            if self._means(kind_pattern, kind, words):
                yield from self._of_kind(kind, words)

    def _means(self, pattern: str, kind: str, words: Sequence[str]) -> bool:
        """Return True where the first word of a search pattern means a kind of probes.

        A glob means kinds of probes of programs, such as uprobe, only where there is a guest, or
        the next word is the path of a file.

        Args:
            pattern: the first word: a kind's name or abbreviation, a glob, or "" for all.
            kind: a kind, such as "uprobe".
            words: the words behind the first one.
        """
        if "*" not in pattern and pattern:
            return (_KINDS.get(pattern) or _KINDS.get(pattern.lower())) == kind
        if kind in _USER and self._guest is None and not os.path.exists(words[0]):
            return False
        return fnmatch.fnmatchcase(kind, pattern or "*")

    def _of_kind(self, kind: str, words: Sequence[str]) -> Iterator[ListedProbe]:
        """Yield the probes of a kind that fit a pattern.

        Args:
            kind: the kind.
            words: the pattern's words behind the kind: targets and names, which may be globs.
        """
        if kind in ("interval", "profile"):
            pattern = ":".join(words)
            for timer in _TIMERS:
                if fnmatch.fnmatchcase(timer, pattern) or fnmatch.fnmatchcase(timer[:-1], pattern):
                    yield ListedProbe(f"{kind}:{timer}")
        elif kind == "self":
            if fnmatch.fnmatchcase("signal:SIGUSR1", ":".join(words)):
                yield ListedProbe("self:signal:SIGUSR1")
        elif kind in _KERNEL:
            yield from self._kernel(kind, joined_name(kind, words)[-1])
        elif kind == "usdt":
            target = words[0] if len(words) > 1 else "*"
            provider = words[1] if len(words) > 2 else "*"
            yield from self._markers(target, provider, words[-1])
        else:
            words = joined_name(kind, words)
            yield from self._functions(kind, words[0] if len(words) > 1 else "*", words[-1])

    def _kernel(self, kind: str, pattern: str) -> Iterator[ListedProbe]:
        """Yield functions of the guest and its libraries as probes of a kind that name no file.

        A name that several of them have is yielded once, for the first. Without a guest there are
        none.

        Args:
            kind: the kind.
            pattern: a glob of their names.
        """
        seen = set[str]()
        for program in self._loaded:
            for probe in _matching(kind, program.names, pattern):
                if probe.text not in seen:
                    seen.add(probe.text)
                    yield probe

    def _functions(self, kind: str, target: str, pattern: str) -> Iterator[ListedProbe]:
        """Yield functions of programs as probes of a kind.

        Args:
            kind: the kind.
            target: the program, a file, or a glob of files.
            pattern: a glob of the functions' names.
        """
        for program in self._programs(target):
            yield from _matching(f"{kind}:{program.path}", program.names, pattern)

    def _markers(self, target: str, provider: str, name: str) -> Iterator[ListedProbe]:
        """Yield static tracepoints of programs as usdt probes, sorted.

        Args:
            target: the program, a file, or a glob of files.
            provider: a glob of their providers; "": all.
            name: a glob of their names; "": all.
        """
        for program in self._programs(target):
            for found in sorted(set(program.names.markers())):
                fits = fnmatch.fnmatchcase(found[0], provider or "*")
                if fits and fnmatch.fnmatchcase(found[1], name or "*"):
                    yield ListedProbe(f"usdt:{program.path}:{found[0]}:{found[1]}")

    def _programs(self, target: str) -> list[ListedProgram]:
        """Return the programs that a target means: the guest, its libraries, and files, which are
        loaded.

        Args:
            target: a path, or a glob of paths.

        Raises:
            OSError, KprobeError: a file that is named without a glob cannot be loaded.
        """
        found = [program for program in self._loaded if _is_target(program.path, target)]
        if "*" not in target:
            if not found and os.path.exists(target):
                found.append(ListedProgram(target, self._load(target)))
            return found
        for path in sorted(glob.glob(target)) if "/" in target else []:
            if any(
                os.path.exists(program.path) and os.path.samefile(path, program.path)
                for program in found
            ):
                continue
            try:
                found.append(ListedProgram(path, self._load(path)))
            except self._ignored:
                continue
        return found

    def of_points(self, points: Iterable[Point]) -> list[ListedProbe]:
        """Return the probes that a script's attach points mean; `begin`, `end` and the like are
        left out.

        Raises:
            OSError, KprobeError: a file that is named without a glob cannot be loaded.
        """
        found: list[ListedProbe] = []
        for point in points:
            if point.kind in ("interval", "profile"):
                found.append(ListedProbe(f"{point.kind}:{point.unit}:"))
            elif point.kind in _KERNEL:
                found += self._kernel(point.kind, point.function)
            elif point.kind in ("uprobe", "uretprobe"):
                found += self._functions(point.kind, point.image or "*", point.function)
            elif point.kind == "usdt":
                found += self._markers(point.image or "*", point.provider, point.function)
        return found


def _is_target(path: str, target: str) -> bool:
    """Return True where an attach point's target means a file: by its path, another path to the
    same file, or its name alone; `libc` also means `libc.so.6`.

    Args:
        path: the file's path.
        target: the target, which may be a glob; "": all.
    """
    if target in ("", "*"):
        return True
    base = os.path.basename(path)
    if fnmatch.fnmatchcase(path, target) or base == target or base.startswith(f"{target}.so"):
        return True
    return os.path.exists(target) and os.path.exists(path) and os.path.samefile(path, target)


def _matching(prefix: str, names: ProgramNames, pattern: str) -> Iterator[ListedProbe]:
    """Yield the functions whose name fits a glob as probes, in order of name, each name once.

    Names with an `@` (symbol versions) are left out. With "fexit" the result is the last parameter.

    Args:
        prefix: what stands in front of the name in a probe's text: "uprobe:./a.out".
        names: the program's functions.
        pattern: the glob.
    """
    found = {name: address for name, address in names.functions() if "@" not in name}
    matches = name_matcher(pattern)
    for name in sorted(found):
        if matches(name):
            parameters = list(names.parameters(found[name]))
            if prefix == "fexit" and (result := names.result(found[name])):
                parameters.append(f"{result} retval")
            yield ListedProbe(f"{prefix}:{name}", tuple(parameters))
