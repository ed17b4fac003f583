"""The command line. Exit codes: 0 good, 1 a check failed, 2 a usage error, 130 interrupted."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import click

from toolshift.errors import UsageError

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
Option = Callable[[Callable[..., Any]], Callable[..., Any]]


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


def main() -> NoReturn:
    """Runs the command line; every error is a sentence, unless TOOLSHIFT_TRACEBACK is set."""
    try:
        sys.exit(toolshift(standalone_mode=False) or 0)
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.ClickException as wrong:
        wrong.show()
        sys.exit(2)
    except UsageError as wrong:
        if os.environ.get("TOOLSHIFT_TRACEBACK"):
            raise
        click.echo(f"Error: {wrong}", err=True)
        sys.exit(2)
    except (KeyboardInterrupt, click.Abort):
        click.echo("Stopped.", err=True)
        sys.exit(130)
    except BrokenPipeError:
        os._exit(141)  # nobody reads on, so there is nothing left to flush
    except OSError as fault:
        if os.environ.get("TOOLSHIFT_TRACEBACK"):
            raise
        where = f"{fault.filename}: " if fault.filename else ""
        what = f"{where}{fault.strerror or fault}"
        click.echo(f"Error: {what}. Make it readable or writable, or name another.", err=True)
        sys.exit(2)


def options(*those: Option) -> Option:
    """Several options as one decorator."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(those):
            command = option(command)
        return command

    return decorate


as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
entities = options(
    click.option("--seed", default=0, show_default=True, help="Seed of the world (the first one)."),
    click.option(
        "--pool",
        default="dev",
        show_default=True,
        help="Pool of entities and shifted wordings: train, dev or test. Test is for planned "
        "studies only.",
    ),
    click.option("--size", default=200, show_default=True, help="Entities in each world."),
)
selection = options(
    click.option(
        "--suite",
        default="quick",
        show_default=True,
        help="quick, standard or paper; see `toolshift list suites`.",
    ),
    click.option("--world", "worlds", multiple=True, help="World instead of the suite's; repeat."),
    click.option("--kind", "kinds", multiple=True, help="Only this task kind; repeat."),
    click.option(
        "--shift",
        "shifts",
        multiple=True,
        metavar="NAME[:SEV][+NAME[:SEV]][*TASKS]",
        help="Shift instead of the suite's; repeat. a+b composes; a tier's name or 'all' stands "
        "for its shifts; 'clean' for none; *12 limits it to 12 tasks a world.",
    ),
    click.option("--without", multiple=True, help="Hold out a shift, or a whole tier; repeat."),
    click.option("--severity", "severities", multiple=True, type=int, help="1 to 3; repeat."),
    click.option(
        "--tasks",
        default=0,
        help="Tasks of each world and seed (default: the suite's). Where a shift applies to few of "
        "them and its arm has a number of its own (*12), more tasks are drawn for it.",
    ),
    click.option("--trials", default=1, show_default=True, help="Runs of each scene."),
    click.option("--seeds", default=1, show_default=True, help="How many seeds, from --seed up."),
    entities,
    click.option("--no-placebo", is_flag=True, help="Leave the placebo arm (noise floor) out."),
)
model = options(
    click.option("--base-url", help="chat: the address before /chat/completions."),
    click.option(
        "--protocol",
        type=click.Choice(["native", "text"]),
        help="chat: native tool calls, or tools written into the prompt.",
    ),
    click.option("--temperature", type=float, help="chat: sampling temperature; default 0."),
    click.option("--max-tokens", type=int, help="chat: most tokens of one reply."),
    click.option("--timeout", type=float, help="chat: seconds of silence before giving up."),
    click.option("--retries", type=int, help="chat: attempts after the first."),
    click.option("--price-in", type=float, help="chat: dollars per million input tokens."),
    click.option("--price-out", type=float, help="chat: dollars per million output tokens."),
    click.option(
        "--max-cost",
        type=float,
        help="chat: dollars that the whole run may cost; it then stops, resumably.",
    ),
)
MODEL_OPTIONS = (
    "base_url", "protocol", "temperature", "max_tokens", "timeout", "retries", "price_in",
    "price_out", "max_cost",
)  # fmt: skip


@toolshift.command()
@click.option("--agent", "agents", multiple=True, required=True, help="`toolshift list agents`.")
@selection
@model
@click.option("--out", type=click.Path(path_type=Path), help="Run folder; resumes the run in it.")
@click.option("--workers", default=1, show_default=True, help="Processes for scripted agents.")
@click.option("--concurrency", type=int, help="Episodes at once, for chat and your own agents.")
@click.option("--estimate", is_flag=True, help="Say what the run would cost, and run nothing.")
@click.option("--only-distinguishable", is_flag=True, help="Print only what can be told apart.")
@as_json
def run(agents: tuple[str, ...], **asked: Any) -> None:
    """Run agents in clean and shifted scenes, and report where they break.

    \b
    toolshift run --agent mymodule:my_agent
    toolshift run --agent chat:gpt-4.1-mini --max-cost 2 --price-in 0.4 --price-out 1.6
    toolshift run --agent smol:static --agent memorises_names --suite standard --out runs/first
    """
    from toolshift.commands.run import run_command

    picked = {name: value for name in MODEL_OPTIONS if (value := asked.pop(name)) is not None}
    run_command(agents, picked, asked)


@toolshift.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--agent", default="", help="Only this agent, in detail.")
@click.option(
    "--table",
    "grouping",
    default="",
    help="Print this table: tiers, dimensions, cells (tier x dimension), shifts, severities, kinds "
    "or worlds.",
)
@click.option("--only-distinguishable", is_flag=True, help="Print only what can be told apart.")
@click.option("--svg", type=click.Path(path_type=Path), help="Draw what is printed to this file.")
@as_json
def report(run: Path, agent: str, svg: Path | None, as_json: bool, **how: Any) -> None:
    """Print the report of a run folder again, also of an unfinished one."""
    from toolshift.commands.run import report_command

    report_command(run, agent, how["grouping"], how["only_distinguishable"], as_json, svg)


@toolshift.command()
@click.argument("before", type=click.Path(path_type=Path))
@click.argument("after", type=click.Path(path_type=Path))
@click.option("--agent", "agents", multiple=True, help="Agent of BEFORE, then of AFTER.")
@click.option("--margin", type=float, help="Non-inferiority margin in points: exit 1 if worse.")
@as_json
def compare(
    before: Path, after: Path, agents: tuple[str, ...], margin: float | None, as_json: bool
) -> None:
    """Compare two runs, paired on the scenes that both have."""
    from toolshift.commands.runs import compare_command

    compare_command(before, after, agents, margin, as_json)


@toolshift.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--write", is_flag=True, help="Write the new verdicts into the run folder.")
@as_json
def regrade(run: Path, write: bool, as_json: bool) -> None:
    """Grade stored traces again, and say how many verdicts have changed."""
    from toolshift.commands.runs import regrade_command

    regrade_command(run, write, as_json)


@toolshift.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("episode")
@as_json
def trace(run: Path, episode: str, as_json: bool) -> None:
    """Print one episode of a run: what was said, and why it failed."""
    from toolshift.commands.runs import trace_command

    trace_command(run, episode, as_json)


@toolshift.command()
@click.argument("task", metavar="WORLD/KIND[/INDEX]")
@click.option("--shift", "shifts", multiple=True, metavar="NAME[:SEV]", help="Shift; repeat.")
@entities
@as_json
def show(
    task: str, shifts: tuple[str, ...], seed: int, pool: str, size: int, as_json: bool
) -> None:
    """Show one scene before and after a shift, side by side.

    \b
    toolshift show poi/booking --shift merged_tools:2
    toolshift show retail/refund/3 --shift format_drift:3 --shift query_typos
    """
    from toolshift.commands.scenes import show_command

    show_command(task, shifts, seed, pool, size, as_json)


@toolshift.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("episode")
@click.option("--agent", help="The agent, where it cannot be made from the run's manifest.")
@model
@click.option("--out", type=click.Path(path_type=Path), help="The pytest file to write.")
@as_json
def minimise(
    run: Path, episode: str, agent: str | None, out: Path | None, as_json: bool, **asked: Any
) -> None:
    """Find the smallest scene in which an episode still fails, and write it as a pytest case."""
    from toolshift.commands.scenes import minimise_command

    picked = {name: value for name in MODEL_OPTIONS if (value := asked[name]) is not None}
    minimise_command(run, episode, agent, out, picked, as_json)


@toolshift.command("list")
@click.argument("what", default="all")
@as_json
def list_(what: str, as_json: bool) -> None:
    """List worlds, shifts, suites, agents or kinds."""
    from toolshift.commands.listing import list_command

    list_command(what, as_json)


@toolshift.command()
@click.argument("names", nargs=-1)
@click.option("--tasks", default=0, help="Tasks of each world (default: two of each kind).")
@click.option("--seed", default=0, show_default=True, help="Seed of the worlds.")
@as_json
def check(names: tuple[str, ...], tasks: int, seed: int, as_json: bool) -> None:
    """Check worlds and shifts against the rules that make them an instrument.

    NAMES are worlds, shifts, or a plugin as module:attribute; all of ours where none is given.
    """
    from toolshift.commands.checking import check_command

    check_command(names, tasks, seed, as_json)


if __name__ == "__main__":
    main()
