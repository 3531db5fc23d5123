"""bpftrace's own runtime and self tests: their files read, from the folder of a checkout."""

import os
import platform
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import attrs

_CONTINUED = ("PROG", "EXPECT", "EXPECT_REGEX")
_EXPECTS = {
    "EXPECT": "text",
    "EXPECT_NONE": "text_none",
    "EXPECT_REGEX": "regex",
    "EXPECT_REGEX_NONE": "regex_none",
    "EXPECT_FILE": "file",
    "EXPECT_JSON": "json",
}
_SINGLE = (
    "RUN PROG TIMEOUT AFTER SETUP CLEANUP MIN_KERNEL MAX_KERNEL ENV ARCH REQUIRES_FEATURE "
    "WILL_FAIL NEW_PIDNS SKIP_IF_ENV_HAS RETURN_CODE LOCALIZE_TIMESTAMPS"
)
_KNOWN = frozenset([*_SINGLE.split(" "), "NAME", "BEFORE", "REQUIRES", *_EXPECTS])


@attrs.frozen
class Expectation:
    """What a test expects of the output.

    Attributes:
        mode: `text`, `text_none`, `regex`, `regex_none`, `file` or `json`.
        text: a line or lines, a regular expression, or a path in the checkout's tests.
    """

    mode: str
    text: str


@attrs.frozen
class RuntimeTest:
    """One test of a file in tests/runtime.

    Attributes:
        suite: the file's name.
        name: as written.
        number: 1, or more for a later test of the same name in the suite.
        program: the script of PROG; "" where RUN says all.
        run: a shell command with {{BPFTRACE}} in it; "" where there is PROG.
        expects: all must hold.
        fields: other directives, name -> text; "" for one without text.
        befores: commands that run before.
        requires: commands that must succeed.
    """

    suite: str
    name: str
    number: int
    program: str
    run: str
    expects: tuple[Expectation, ...]
    fields: dict[str, str]
    befores: tuple[str, ...]
    requires: tuple[str, ...]

    @property
    def id(self) -> str:
        """The test's name in tables: `call.buf`, `call.buf (2)` for the second of that name."""
        again = f" ({self.number})" if self.number > 1 else ""
        return f"{self.suite}.{self.name}{again}"

    @property
    def text(self) -> str:
        """Script or command, whichever there is."""
        return self.program or self.run

    @property
    def after(self) -> str:
        """The command that runs once the probes are attached."""
        return self.fields.get("AFTER", "")

    @property
    def timeout(self) -> int:
        """Seconds."""
        return int(self.fields.get("TIMEOUT", "5"))

    @property
    def exact(self) -> bool:
        """Whether all of the output is compared."""
        return any(expect.mode in ("file", "json") for expect in self.expects)

    @property
    def environment(self) -> dict[str, str]:
        """Variables that the test sets."""
        return dict(pair.split("=", 1) for pair in self.fields.get("ENV", "").split())

    @property
    def on_this_host(self) -> bool:
        """Whether ARCH lets the test run on the host's architecture."""
        wanted = [arch.strip() for arch in self.fields.get("ARCH", "").split("|") if arch.strip()]
        host = {platform.machine().lower(), "be" if sys.byteorder == "big" else "le"}
        chosen = [arch for arch in wanted if not arch.startswith("!")]
        refused = [arch[1:] for arch in wanted if arch.startswith("!")]
        return (not chosen or bool(host & set(chosen))) and not host & set(refused)


def _blocks(path: Path) -> Iterator[list[str]]:
    """Yield the lines of each test of a file; an empty line ends a test."""
    block: list[str] = []
    for line in path.read_text().split("\n"):
        if line.startswith("#"):
            continue
        if line:
            block.append(line)
        elif block:
            yield block
            block = []
    if block:
        yield block


def _directives(block: list[str]) -> list[tuple[str, str]]:
    """Return the directives of a test; indented lines continue the one before."""
    found: list[tuple[str, str]] = []
    for line in block:
        if found and found[-1][0] in _CONTINUED and not line[: len(found[-1][0]) + 1].strip():
            name, text = found[-1]
            found[-1] = (name, f"{text}\n{line[len(name) + 1 :]}")
            continue
        name, _, text = line.strip().partition(" ")
        if name not in _KNOWN:
            raise ValueError(f"{name} is no directive of a runtime test: {line}")
        found.append((name, text.strip()))
    return found


def read_suite(path: Path) -> list[RuntimeTest]:
    """Return the tests of one file."""
    found: list[RuntimeTest] = []
    for block in _blocks(path):
        directives = _directives(block)
        fields = {
            name: text
            for name, text in directives
            if name not in _EXPECTS and name not in ("NAME", "BEFORE", "REQUIRES", "PROG", "RUN")
        }
        first = dict(reversed(directives))
        name = first["NAME"]
        found.append(
            RuntimeTest(
                suite=path.name,
                name=name,
                number=1 + sum(test.name == name for test in found),
                program=first.get("PROG", ""),
                run=first.get("RUN", ""),
                expects=tuple(
                    Expectation(_EXPECTS[name], text)
                    for name, text in directives
                    if name in _EXPECTS
                ),
                fields=fields,
                befores=tuple(text for name, text in directives if name == "BEFORE"),
                requires=tuple(text for name, text in directives if name == "REQUIRES"),
            )
        )
    return found


def read_self_tests(path: Path) -> list[RuntimeTest]:
    """Return the `test:` probes of a script in tests/self, each as a test of its own."""
    names = re.findall(r"^test:(\w+)", path.read_text(), re.MULTILINE)
    return [
        RuntimeTest(
            suite=f"self/{path.name}",
            name=name,
            number=1,
            program="",
            run=f"{{{{BPFTRACE}}}} --test --probe-filter '^test:{name}$' self/{path.name}",
            expects=(Expectation("regex", rf" OK \].* {name} \("),),
            fields={},
            befores=(),
            requires=(),
        )
        for name in names
    ]


def read_tests(checkout: str | os.PathLike[str]) -> list[RuntimeTest]:
    """Return all runtime tests of a checkout of bpftrace, and its self tests."""
    tests = Path(checkout) / "tests"
    suites = [path for path in sorted((tests / "runtime").iterdir()) if path.is_file()]
    found = [test for path in suites for test in read_suite(path)]
    for path in sorted((tests / "self").glob("*.bt")):
        found += read_self_tests(path)
    return found
