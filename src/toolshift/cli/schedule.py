"""`toolshift schedule`, an old command: examples/schedule has the files that it writes, to copy.

It writes a cron line or a GitHub workflow that measures an agent again and again."""

from __future__ import annotations

import re
import shlex
import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal

import click
import yaml

from toolshift.agents.catalog import check_settings
from toolshift.cli.options import ModelOptions
from toolshift.cli.parameters import PATH, options_struct
from toolshift.cli.run import run as run_command
from toolshift.core.errors import UsageError
from toolshift.core.files import save
from toolshift.core.terminal import say
from toolshift.measure.trend import ANCHOR, FRESH
from toolshift.runs.suite import Selection, select
from toolshift.worlds.registry import find_world

SCRIPT = "toolshift-schedule.sh"
WORKFLOW = ".github/workflows/toolshift-drift.yml"
BRANCH = "toolshift-drift"
INSTALL = "pip install ./toolshift -e ."
"""A clone of ToolShift in a folder of the repository, and the package of the agent."""
_FIELD = re.compile(r"[\d*/,\-A-Za-z]+")
_RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
"""The smallest and the largest number that each field of a cron line may have."""
_OURS = {
    "out": "--out",
    "as_json": "--json",
    "estimate": "--estimate",
    "seed": "--seed",
    "seeds": "--seeds",
}
"""What the schedule sets itself."""


@dataclass(frozen=True, kw_only=True)
class ScheduleOptions:
    """What `toolshift schedule` is asked for.

    Attributes:
        kind: what is written: a script with its cron line, or a workflow.
        run: the options of `toolshift run`.
        at: when, as cron writes it.
        folder: of the results.
        anchor_seed: of the tasks that are the same each day.
        install: the command by which the workflow installs ToolShift and the agent; None for the
            usual one.
        secrets: that the workflow passes on as variables.
    """

    kind: Literal["cron", "github"]
    run: tuple[str, ...]
    at: str
    folder: Path
    anchor_seed: int
    out: Path | None
    install: str | None
    secrets: tuple[str, ...]


@click.command()
@click.argument("kind", type=click.Choice(["cron", "github"]))
@click.argument("run", metavar="-- RUN-OPTIONS...", nargs=-1, required=True)
@click.option(
    "--at",
    default="17 4 * * 1",
    show_default=True,
    help="Time in cron format; GitHub reads it as UTC.",
)
@click.option(
    "--folder",
    type=PATH,
    default=Path("drift"),
    show_default=True,
    help="Folder of the results, next to the written file.",
)
@click.option(
    "--anchor-seed", default=0, show_default=True, help="Seed of the tasks that stay the same."
)
@click.option("--out", type=PATH, help=f"The file (default: {SCRIPT}, or {WORKFLOW}).")
@click.option(
    "--install",
    show_default=INSTALL,
    help="github: what installs ToolShift and your agent.",
)
@click.option(
    "--secret",
    "secrets",
    multiple=True,
    metavar="NAME",
    help="github: a secret to pass on; repeat.",
)
@options_struct(ScheduleOptions)
def schedule(options: ScheduleOptions) -> None:
    """Write a script with its cron line, or a workflow, that measures an agent every day.

    Each day runs the same anchor tasks, so that months can be compared, and fresh tasks with the
    date as seed. Then `toolshift report` writes the page. Options of `toolshift run` come after --.
    The variable DAY=2026-01-31 sets another day.

    \b
    toolshift schedule cron -- --agent mymodule:my_agent --tasks 24
    toolshift schedule github --secret OPENAI_API_KEY -- --agent chat:gpt-4.1-mini --max-cost 2
    """
    _check_time(options.at)
    if options.folder.is_absolute() or ".." in options.folder.parts:
        raise UsageError("--folder is relative to the written file: give a relative path")
    _check_workflow(options)
    fresh = _draws(options.run)
    out = options.out or Path(SCRIPT if options.kind == "cron" else WORKFLOW)
    text = _script(options, fresh) if options.kind == "cron" else _workflow(options, fresh)
    save(out, text.encode(), make_folder=True)
    say(f"Written: {out}")
    if not fresh:
        say("This world has fixed tasks, so every day runs the anchors only.")
    if options.kind == "cron":
        say("Add this line with `crontab -e`; cron reads the time of your machine:")
        say(_cron_line(options, out))
    else:
        say(f"Results are kept on the branch {BRANCH}. Try it: run the workflow by hand.")


def _check_workflow(options: ScheduleOptions) -> None:
    """Checks that options of a workflow come with one, and that it can name secrets."""
    if options.secrets and options.kind == "cron":
        raise UsageError(
            "--secret works only with github; a cron script reads variables from its own "
            "environment: set them in the crontab"
        )
    if options.install is not None and options.kind == "cron":
        raise UsageError(
            "--install works only with github; a cron script runs the Python that writes it: "
            "leave it out"
        )
    for secret in options.secrets:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", secret):
            raise UsageError(
                f"--secret {secret!r}: give the name of a secret of the repository, as in "
                "OPENAI_API_KEY, and not its value"
            )


def _check_time(at: str) -> None:
    fields = at.split()
    if len(fields) != 5 or not all(
        _FIELD.fullmatch(each)
        and all(least <= int(one) <= most for one in re.findall(r"\d+", each))
        and "/0" not in each
        for each, (least, most) in zip(fields, _RANGES, strict=True)
    ):
        raise UsageError(
            f"--at {at!r}: five fields are needed: minute, hour, day of the month, month, day of "
            "the week, such as '17 4 * * 1'"
        )


def _draws(words: tuple[str, ...]) -> bool:
    """Whether another seed has other tasks; checks the options of the run as it will."""
    try:
        context = run_command.make_context("run", list(words), resilient_parsing=False)
    except click.ClickException as wrong:
        raise UsageError(f"behind --: {wrong.format_message()}") from None
    given = context.params
    for name, option in _OURS.items():
        if context.get_parameter_source(name) == click.core.ParameterSource.COMMANDLINE:
            raise UsageError(f"after --: {option} is set by the schedule; leave it out")
    if not (given["agents"] or given["commands"] or given["urls"]):
        raise UsageError("after --: name an agent: --agent, --agent-command or --agent-url")
    programs = (f"command:{each}" for each in given["commands"])
    specs = [*given["agents"], *programs, *(f"url:{each}" for each in given["urls"])]
    model = ModelOptions(**{field.name: given[field.name] for field in fields(ModelOptions)})
    check_settings(specs, model.given())
    chosen = select(
        Selection(**{name: given[name] for name in Selection.__struct_fields__ if name in given})
    )
    return not any(find_world(name).counts for name in chosen.worlds)


# -- what is written -------------------------------------------------------------------------------


def _steps(options: ScheduleOptions, fresh: bool, toolshift: str) -> str:
    """The commands of one day, for any POSIX shell. Started again, they resume."""
    folder = shlex.quote(options.folder.as_posix())
    run = shlex.join(options.run)
    arms = [(ANCHOR, str(options.anchor_seed))]
    if fresh:
        arms.append((FRESH, '"$SEED"'))
    lines = [
        'DAY="${DAY:-$(date -u +%Y-%m-%d)}"',
        "# fresh tasks: the date is their seed, so a day can be run again",
        'SEED="$(printf %s "$DAY" | tr -d -)"' if fresh else "",
        "status=0",
        *(
            f'{toolshift} run {run} --seed {seed} --out {folder}/"$DAY"/{arm} || status=$?'
            for arm, seed in arms
        ),
        f"{toolshift} report {folder} --site {folder} --fail-on-loss || status=$?",
        'exit "$status"',
    ]
    if not fresh:
        del lines[1]
    return "\n".join(line for line in lines if line) + "\n"


def _script(options: ScheduleOptions, fresh: bool) -> str:
    python = shlex.quote(sys.executable)
    return (
        "#!/bin/sh\n"
        "# Measures an agent on the same anchor tasks and on fresh ones; see docs/watch.md.\n"
        "# Written by `toolshift schedule cron`. DAY=2026-01-31 sets the day.\n"
        "set -u\n"
        'cd "$(dirname "$0")" || exit 2\n' + _steps(options, fresh, f"{python} -m toolshift")
    )


def _cron_line(options: ScheduleOptions, out: Path) -> str:
    script = shlex.quote(str(out.resolve())).replace("%", r"\%")
    log = shlex.quote(str(out.resolve().with_suffix(".log"))).replace("%", r"\%")
    return f"{options.at} sh {script} >>{log} 2>&1"


class _Block(str):
    """A text that YAML writes line by line."""


class _Dumper(yaml.SafeDumper):
    pass


_Dumper.add_representer(
    _Block, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|")
)


def _workflow(options: ScheduleOptions, fresh: bool) -> str:
    folder = options.folder.as_posix()
    name = shlex.quote(folder)
    env = {secret: f"${{{{ secrets.{secret} }}}}" for secret in options.secrets}
    restore = (
        f"if git fetch --depth 1 origin {BRANCH}; then\n"
        f"  git worktree add {name} FETCH_HEAD\n"
        "else  # the first day\n"
        f"  git worktree add --detach {name}\n"
        f"  git -C {name} checkout --orphan {BRANCH}\n"
        f"  git -C {name} rm -rfq .\n"
        "fi\n"
    )
    keep = (
        f"git -C {name} add -A\n"
        f"git -C {name} -c user.name=toolshift -c user.email=toolshift@localhost \\\n"
        '  commit -qm "results" || exit 0  # nothing new\n'
        f"git -C {name} push origin HEAD:refs/heads/{BRANCH}\n"
    )
    document = {
        "name": "agent drift",
        "on": {
            "schedule": [{"cron": options.at}],
            "workflow_dispatch": {
                "inputs": {"day": {"description": "The day, such as 2026-01-31", "default": ""}}
            },
        },
        "permissions": {"contents": "write"},
        "concurrency": {"group": BRANCH},
        "jobs": {
            "drift": {
                "runs-on": "ubuntu-latest",
                "steps": [
                    {"uses": "actions/checkout@v4"},
                    {
                        "uses": "actions/setup-python@v5",
                        "with": {"python-version": "3.11", "cache": "pip"},
                    },
                    {"name": "install", "run": options.install or INSTALL},
                    {"name": "bring back the earlier days", "run": _Block(restore)},
                    {
                        "name": "measure",
                        "env": {"DAY": "${{ inputs.day }}", **env},
                        "run": _Block(_steps(options, fresh, "toolshift")),
                    },
                    {"name": "keep", "if": "always()", "run": _Block(keep)},
                    {
                        "uses": "actions/upload-artifact@v4",
                        "if": "always()",
                        "with": {"name": "toolshift-trend", "path": f"{folder}/trend.html"},
                    },
                ],
            }
        },
    }
    lead = "# Measures an agent on the same anchor tasks and on fresh ones; see docs/watch.md.\n"
    text: str = yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=1000)
    return lead + text.replace("'on':", "on:")
