"""Options of commands that have another name now, or are gone; they work for two minor versions.

See deprecation.py for names and parameters, docs/public.md for the promise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import click

from ..deprecation import Renamed


class FormerOption(click.Option):
    """An option that is hidden, and at its use says on standard error what to write instead.

    `@click.option("--limit", cls=FormerOption, now="--most", goes="1.3")` beside the declaration of
    `--most`. Its value goes to the present option's parameter, unless that is given, too. Without
    `now` the value is ignored.
    """

    def __init__(self, *args: Any, now: str = "", goes: str, **settings: Any) -> None:
        """
        Args:
            args: the option's former names.
            now: its present name, "--most"; "": it has none any more.
            goes: version in which the former name goes.
            settings: as of click.Option: type, is_flag ...
        """
        self.renamed = Renamed(now, goes)
        # before the present option, which finds the value as if it had been written
        settings |= {"hidden": True, "expose_value": False, "is_eager": True}
        super().__init__(*args, **settings)

    def handle_parse_result(
        self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]
    ) -> tuple[Any, list[str]]:
        """Warn, and give the value to the present option, where the former one was written.

        Args:
            ctx: the command's.
            opts: parameter -> value, of the options that were written.
            args: what is left of the command line.

        Returns:
            (the option's value, what is left of the command line), as click has it.

        Raises:
            UsageError: both are written.
        """
        now, goes = self.renamed
        written = dict(opts)
        if self.name in written:
            instead = f"is called {now}" if now else "has no effect any more"
            click.echo(f"Warning: {self.opts[0]} {instead}; it goes in kprobes {goes}", err=True)
            value = written.pop(self.name)
            present = [each.name for each in ctx.command.params if now in each.opts]
            for name in filter(None, present):
                if name in written:
                    raise click.UsageError(f"{self.opts[0]} and {now} are the same option")
                cast("dict[str, Any]", opts)[name] = value
        return super().handle_parse_result(ctx, written, args)
