"""bpftrace's language at probes of any guest.

A script is compiled to eBPF programs (`kprobes.programs`) by passes that know the tree and not each
other:

- `source`, `scanner`, `expressions`, `parser`: text to tree (`tree`); messages with their places.
- `macros`, `folding`: macros and parameters are replaced, literals computed.
- `points`, `placing`, `guest`, `world`: attach points to places of the guest; what is known of it.
- `definitions`, `settings`: C types of the script; config variables.
- `types`, `promotion`, `names`, `inference`, `signatures`, `deduction`: types of everything.
- `layout`, `storage`: how values lie in memory; what programs share.
- `blocks`, `functions`, `aggregates`, `texts`, `generator`: code, by `programs.assembler`.
- `compiler`: the passes in order. `script`: runs. `performing`: what programs have Python do.
  `values`: decoding.
- `output`, `printing`, `printf`, `histograms`, `series`, `ordering`, `times`, `gfp`: what is
  printed.

Begin with `compiler`, which calls the passes, and `script`, which runs what they made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .source import ScriptError

if TYPE_CHECKING:
    from .placing import Probed
    from .script import Script


def script_at(
    kprobes: Probed,
    text: str,
    params: Sequence[str | int] = (),
    named: Mapping[str, str | bool] | None = None,
    **options: Any,
) -> Script:
    """Compile a script for probes of a guest, as Kprobes.script() does; nothing is attached yet.

    Args:
        kprobes: the Kprobes that is to register the probes.
        text: the script.
        params: positional parameters, `$1` and on.
        named: options that the script asks for by getopt(); True where one has no value.
        options: further arguments of Script.

    Returns:
        The script; entering it as a context manager attaches its probes.

    Raises:
        ScriptError: the script is wrong.
    """
    from .folding import Parameters
    from .script import Script

    parameters = Parameters([str(one) for one in params], dict(named or {}))
    return Script(text, kprobes=kprobes, parameters=parameters, **options)


__all__ = ["ScriptError", "script_at"]
