"""`toolshift recheck`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import click

from toolshift.cli.options import PATH, as_json, options_struct
from toolshift.core.terminal import print_json, progress, say
from toolshift.measure.recheck import Difference, Recheck
from toolshift.measure.recheck import recheck as play_again
from toolshift.report.html.figures import shown
from toolshift.report.words import verdict
from toolshift.runs.run_folder import RunFolder

MAX_SHOWN = 20


@dataclass(frozen=True, kw_only=True)
class RecheckOptions:
    """What `toolshift recheck` is asked for."""

    run: Path
    sample: int
    seed: int
    as_json: bool


@click.command()
@click.argument("run", type=PATH)
@click.option("--sample", default=100, show_default=True, help="Episodes to play again.")
@click.option("--seed", default=0, show_default=True, help="Of the drawing of the sample.")
@as_json
@options_struct(RecheckOptions)
def recheck(options: RecheckOptions) -> None:
    """Play a sample of a run again, and say whether the stored verdicts hold.

    The recorded calls are made in fresh scenes: no agent and no model is asked. Episodes whose
    tools are real are left out, and so are void ones.

    Exit codes: 0 they hold, 1 some differ, 2 nothing could be played again.
    """
    folder = RunFolder.read(options.run)
    with progress("episodes") as watch:
        found = play_again(folder, options.sample, options.seed, watch)
    made = folder.manifest.toolshift
    if options.as_json:
        print_json({**_plain(found), "holds": found.holds, "toolshift": made})
    else:
        _print(found, made)
    sys.exit(0 if found.holds else 1)


def _plain(found: Recheck) -> dict[str, object]:
    return {name: getattr(found, name) for name in found.__struct_fields__}


def _print(found: Recheck, made: str) -> None:
    for why, number in found.left_out.items():
        say(f"{number} of {found.episodes} episodes are left out: {why}.")
    if found.holds:
        say(f"{found.played} episodes played again (seed {found.seed}): all verdicts hold.")
        return
    verdicts = sum(each.what == "verdict" for each in found.differ)
    say(
        f"{found.played} episodes played again (seed {found.seed}): {len(found.differ)} differ, "
        f"{verdicts} of them in the verdict. The run was made with ToolShift {made}, and this is "
        f"{version('toolshift')}."
    )
    for each in found.differ[:MAX_SHOWN]:
        _print_difference(each)
    if len(found.differ) > MAX_SHOWN:
        say(f"  and {len(found.differ) - MAX_SHOWN} more (--json has all)")


def _print_difference(each: Difference) -> None:
    said = f"{verdict(each.before)} -> {verdict(each.after)}"
    say(f"  {each.episode}: {said if each.what == 'verdict' else 'the verdict holds'}")
    if each.step is None:
        say("    the trace is the same: the verdict was altered, or the rules have changed")
    else:
        say(f"    step {each.step}, stored: {shown(each.stored)}")
        say(f"    step {each.step}, again:  {shown(each.again)}")
