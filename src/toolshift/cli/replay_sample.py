"""`toolshift replay --sample`: do the stored verdicts of a run hold?"""

from __future__ import annotations

from importlib.metadata import version

from toolshift.core.terminal import print_json, progress, say
from toolshift.measure.recheck import Difference, Recheck, recheck
from toolshift.report.html.figures import shown
from toolshift.report.words import verdict
from toolshift.runs.run_folder import RunFolder

MAX_SHOWN = 20


def play_sample(folder: RunFolder, sample: int, seed: int, as_json: bool) -> int:
    """Plays a sample of a run again, and says whether the verdicts hold; returns the exit code."""
    with progress("episodes") as watch:
        found = recheck(folder, sample, seed, watch)
    made = folder.manifest.toolshift
    if as_json:
        print_json({**_plain(found), "holds": found.holds, "toolshift": made})
    else:
        _print(found, made)
    return 0 if found.holds else 1


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
