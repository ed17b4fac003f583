"""The group that all commands join."""

from __future__ import annotations

import os

import click

from toolshift.core.errors import UsageError

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}

SECTIONS = {
    "Measure": ("measure", "gate"),
    "Train": ("train", "artifacts"),
    "Connect": ("world", "shift", "connect", "model_proxy"),
}
"""What commands are for, and the modules of this package that define them."""


class Group(click.Group):
    """Commands in the order of definition; an unknown one is answered with the nearest names."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of definition."""
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Finds a command, or offers the nearest names."""
        if args and args[0] not in self.commands:
            from toolshift.core.names import unknown

            raise UsageError(unknown("command", args[0], self.commands))
        return super().resolve_command(ctx, args)


class Commands(Group):
    """Lists the commands by what they are for, in the order in which they are of use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, section by section, in the order of definition."""
        return [name for modules in SECTIONS.values() for name in self._of(modules)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes each section of the help with its commands."""
        width = formatter.width - 6 - max(map(len, self.commands))
        for title, modules in SECTIONS.items():
            names = self._of(modules)
            with formatter.section(title):
                formatter.write_dl(
                    [(name, self.commands[name].get_short_help_str(width)) for name in names]
                )

    def _of(self, modules: tuple[str, ...]) -> list[str]:
        """The commands that some modules of this package define."""
        return [
            name
            for module in modules
            for name, command in self.commands.items()
            if getattr(command.callback, "__module__", "") == f"toolshift.cli.{module}"
        ]


@click.group(cls=Commands, context_settings=CONTEXT)
@click.version_option(package_name="toolshift", message="%(package)s %(version)s")
@click.option(
    "--plugin",
    "plugins",
    multiple=True,
    metavar="FILE.py|MODULE",
    help="Shifts of your own that are not installed; before the command; repeat.",
)
def toolshift(plugins: tuple[str, ...]) -> None:
    """Stress-tests tool-use agents: what happens to your agent when the world moves?"""
    if plugins:
        from toolshift.shifts.registry import PLUGINS

        os.environ[PLUGINS] = os.pathsep.join(plugins)  # worker processes inherit it
