"""Former parameters of functions and options of commands work, and say what to write now."""

from __future__ import annotations

import importlib
import inspect
import re
import warnings

import click
import pytest
from click.testing import CliRunner
from test_public import callables

import kprobes
import kprobes.fuzz
from kprobes.cli import main
from kprobes.cli._former import FormerOption
from kprobes.deprecation import Renamed, former_parameter

pytestmark = pytest.mark.quick


@former_parameter("timeout", "seconds", goes="1.3")
@former_parameter("colour", "", goes="1.4")
def wait(what: str, *, seconds: float = 1.0) -> tuple[str, float]:
    """Wait."""
    return what, seconds


def test_a_former_parameter_gives_its_value_to_the_present_one() -> None:
    with pytest.warns(DeprecationWarning, match=r"timeout, a parameter of wait\(\), is called seconds; .* kprobes 1\.3") as told:
        assert wait("a", timeout=2.0) == ("a", 2.0)
    assert told[0].filename == __file__


def test_a_parameter_that_is_gone_is_ignored() -> None:
    with pytest.warns(DeprecationWarning, match=r"colour, .* has no effect any more; it goes in kprobes 1\.4"):
        assert wait("a", colour=True, seconds=3.0) == ("a", 3.0)


def test_both_names_are_an_error() -> None:
    with pytest.warns(DeprecationWarning), pytest.raises(TypeError, match="both 'timeout' and 'seconds'"):
        wait("a", timeout=2.0, seconds=3.0)


def test_the_present_names_do_not_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert wait("a", seconds=3.0) == ("a", 3.0)
    assert wait.former == {"timeout": Renamed("seconds", "1.3"), "colour": Renamed("", "1.4")}
    assert [*inspect.signature(wait).parameters] == ["what", "seconds"]


@click.command()
@click.option("--limit", cls=FormerOption, now="--most", goes="1.3", type=int)
@click.option("--loud", cls=FormerOption, goes="1.3", is_flag=True)
@click.option("--most", type=int, default=5)
def count(most: int) -> None:
    click.echo(most)


@pytest.mark.parametrize(("words", "out", "said"), [
    ((), "5\n", ""),
    (("--most", "7"), "7\n", ""),
    (("--limit", "7"), "7\n", "Warning: --limit is called --most; it goes in kprobes 1.3\n"),
    (("--loud",), "5\n", "Warning: --loud has no effect any more; it goes in kprobes 1.3\n"),
])
def test_former_options(words: tuple[str, ...], out: str, said: str) -> None:
    result = CliRunner().invoke(count, words)
    assert (result.exit_code, result.stdout, result.stderr) == (0, out, said)


@pytest.mark.parametrize("words", [("--limit", "7", "--most", "8"), ("--most", "8", "--limit", "7")])
def test_an_option_by_both_names_is_an_error(words: tuple[str, ...]) -> None:
    result = CliRunner().invoke(count, words)
    assert result.exit_code == 2 and "--limit and --most are the same option" in result.stderr


def test_former_options_are_not_in_the_help() -> None:
    assert "--limit" not in CliRunner().invoke(count, ["--help"]).stdout


def test_all_go_after_two_minor_versions() -> None:
    """Nothing is there that should have gone by now."""
    now = [int(number) for number in re.findall(r"\d+", kprobes.__version__)[:2]]
    importlib.import_module("kprobes.cli")
    found = [(name, renamed) for name, function in callables()
             for renamed in getattr(function, "former", {}).values()]
    context = click.Context(main)
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        found += [(name, option.renamed) for option in (command.params if command else ())
                  if isinstance(option, FormerOption)]
    assert [(name, renamed) for name, renamed in found
            if [int(number) for number in renamed.goes.split(".")[:2]] <= now] == []


FORMER_NAMES_OF_SINK = {
    "exact": "limit_jumps", "starting": "run_begins", "sent": "guest_sent", "ended": "run_ended",
    "abandon": "displaced_left", "home": "home_of", "ours": "owns", "stops": "has_breakpoint",
    "original": "without_patches", "copied": "copied_patch", "waits": "pending_target",
    "in_turn": "threads_take_turns", "unloading": "about_to_unmap", "protected": "permissions_changed",
}


@pytest.mark.parametrize(("former", "now"), FORMER_NAMES_OF_SINK.items())
def test_engines_of_others_may_say_former_names_of_sink(former: str, now: str) -> None:
    with kprobes.UnicornMachine.load("examples/demo.x86_64") as m, kprobes.Kprobes(m) as k:
        with pytest.warns(DeprecationWarning, match=rf"{former} is called {now}; the former name goes in kprobes 1\.2"):
            found = getattr(k._listener, former)
        assert found == getattr(k._listener, now) and callable(found)


def test_former_names_of_traces_and_targets() -> None:
    target = kprobes.fuzz.PythonTarget("here.py")
    error = ValueError("no")
    with pytest.warns(DeprecationWarning, match="error_of"):
        assert str(target.mistake(error)) == str(target.error_of(error))
    with kprobes.UnicornMachine.load("examples/demo.x86_64") as m, kprobes.Kprobes(m) as k:
        with k.trace("p crc32") as t:
            pass
        with pytest.warns(DeprecationWarning, match="caller_name"):
            assert t.caller(m.symbols["crc32"].address + 4) == t.caller_name(m.symbols["crc32"].address + 4)
