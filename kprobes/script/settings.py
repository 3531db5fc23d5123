"""The settings of a script or the environment: bpftrace's config variables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import attrs
from attrs import frozen

from .source import Diagnostics, did_you_mean
from .tree import ConfigSetting

STACK_MODES: Final = ("bpftrace", "perf", "raw", "build_id")
_CHOICES: Final[dict[str, tuple[str, ...]]] = {
    "stack_mode": STACK_MODES,
    "missing_probes": ("error", "warn", "ignore"),
    "cache_user_symbols": ("PER_PID", "PER_PROGRAM", "NONE"),
    "license": (
        "Dual MIT/GPL",
        "Dual BSD/GPL",
        "Dual MPL/GPL",
        "GPL and additional rights",
        "GPL v2",
        "GPL",
    ),
    "unstable_tseries": ("error", "warn", "enable"),
    "unstable_dw_ustack": ("error", "warn", "enable"),
    "unstable_typeinfo": ("error", "warn", "enable"),
    "unstable_import_statement": ("error", "warn", "enable"),
}


@frozen
class Settings:
    """Values of config variables; see bpftrace's documentation for what each means.

    Those that steer a kernel or its symbols only (cache_user_symbols, license, perf_rb_pages ...)
    are taken and have no effect.

    Attributes:
        dummy_ts_map: name of the map whose value tseries() takes for the time, so that a test's
            series are always the same; "": none. Of the environment only.
    """

    max_strlen: int = 1024
    max_map_keys: int = 4096
    max_probes: int = 1024
    max_bpf_progs: int = 1024
    max_cat_bytes: int = 10240
    max_type_res_iterations: int = 0
    log_size: int = 1000000
    on_stack_limit: int = 32
    perf_rb_pages: int = 256
    missing_probes: str = "error"
    print_maps_on_exit: bool = True
    stack_mode: str = "bpftrace"
    str_trunc_trailer: str = ".."
    cpp_demangle: bool = True
    lazy_symbolication: bool = False
    show_debug_info: bool = True
    cache_user_symbols: str = "PER_PROGRAM"
    license: str = "GPL"
    unstable_tseries: str = "warn"
    unstable_dw_ustack: str = "warn"
    unstable_typeinfo: str = "error"
    unstable_import_statement: str = "error"
    dummy_ts_map: str = ""


NAMES: Final = tuple(field.name for field in attrs.fields(Settings) if field.name != "dummy_ts_map")


def configured(
    lines: Iterable[ConfigSetting], environment: Mapping[str, str], found: Diagnostics
) -> Settings:
    """Return the settings of a script.

    A name or value that is wrong is noted as an error, and does not count: the setting keeps its
    default, or what a line has given it.

    Args:
        lines: the lines of its config block.
        environment: the process's environment, whose `BPFTRACE_...` count more than `lines`.
        found: where errors go.
    """
    values: dict[str, object] = {}
    for line in lines:
        name = line.name.lower().removeprefix("bpftrace_")
        if name not in NAMES:
            found.error(
                f"{line.name}: not a known configuration option",
                line.span,
                *did_you_mean(name, NAMES),
            )
            continue
        value = _value(name, line.value)
        if isinstance(value, _BadValue):
            found.error(value.reason, line.span)
        else:
            values[name] = value
    for name in NAMES:
        text = environment.get(f"BPFTRACE_{name.upper()}")
        if text is not None:
            value = _value(name, int(text) if text.isascii() and text.isdecimal() else text)
            if isinstance(value, _BadValue):
                found.error(value.reason, None)
            else:
                values[name] = value
    values["dummy_ts_map"] = environment.get("BPFTRACE_DUMMY_TS_MAP", "")
    return Settings(**values)  # type: ignore[arg-type]


@frozen
class _BadValue:
    """Why a value is none that a variable can have.

    Attributes:
        reason: the message.
    """

    reason: str


def _value(name: str, value: str | int | bool) -> object:
    """Return a variable's value converted to the variable's type; a word out of a list in the
    list's own spelling.

    Args:
        name: the variable.
        value: as the script or the environment gives it.

    Returns:
        The value; a _BadValue, not raised, where the variable cannot have this value.
    """
    kind = type(getattr(Settings(), name))
    if kind is bool:
        if value in (0, 1, True, False):
            return bool(value)
        if isinstance(value, str) and value.lower() in ("true", "false", "0", "1"):
            return value.lower() in ("true", "1")
        return _BadValue(f"{name}: Invalid bool value, only false or true allowed.")
    if kind is int:
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        return _BadValue(f"{name}: Expecting a number.")
    if not isinstance(value, str):
        return _BadValue(f"{name}: Expecting a string.")
    choices = _CHOICES.get(name)
    if choices is not None and value not in choices:
        known = {choice.lower(): choice for choice in choices}
        if value.lower() not in known and name == "license":
            return _BadValue(
                f"Invalid value for license. Found: {value}. Valid values: {', '.join(choices)}."
            )
        if value.lower() not in known:
            return _BadValue(
                f"{name}: Invalid value for {name}: valid values are "
                f"{', '.join(choices[:-1])}, and {choices[-1]}."
            )
        return known[value.lower()]
    return value
