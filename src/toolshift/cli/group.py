"""The group that all commands join."""

from __future__ import annotations

import os

import click

from toolshift.errors import UsageError

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class Commands(click.Group):
    """Lists the commands in the order in which they are of use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of definition."""
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Finds a command, or offers the nearest names."""
        if args and args[0] not in self.commands:
            from toolshift.shift import unknown

            raise UsageError(unknown("command", args[0], self.commands))
        return super().resolve_command(ctx, args)


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
        from toolshift.shift import PLUGINS

        os.environ[PLUGINS] = os.pathsep.join(plugins)  # worker processes inherit it
