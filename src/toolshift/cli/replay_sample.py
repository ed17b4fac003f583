"""`toolshift replay --sample`: do the stored verdicts of a run hold?"""

from __future__ import annotations

from importlib.metadata import version

from toolshift.core.terminal import print_json, progress, say
from toolshift.measure.recheck import Difference, Recheck, recheck
from toolshift.report.figures import shown
from toolshift.report.words import verdict
from toolshift.runs.run_folder import RunFolder

MAX_SHOWN = 20


def play_sample(folder: RunFolder, sample: int, seed: int, as_json: bool) -> int:
    """Plays a sample of a run again, and says whether the verdicts hold; returns the exit code."""
    with progress("episodes") as watch:
        rechecked = recheck(folder, sample, seed, watch)
    made = folder.manifest.toolshift
    if as_json:
        print_json({**_plain(rechecked), "holds": rechecked.holds, "toolshift": made})
    else:
        _print(rechecked, made)
    return 0 if rechecked.holds else 1


def _plain(rechecked: Recheck) -> dict[str, object]:
    return {name: getattr(rechecked, name) for name in rechecked.__struct_fields__}


def _print(result: Recheck, made: str) -> None:
    for why, number in result.left_out.items():
        say(f"{number} of {result.episodes} episodes are left out: {why}.")
    if result.holds:
        say(f"{result.played} episodes replayed (seed {result.seed}): all verdicts are confirmed.")
        return
    verdicts = sum(difference.what == "verdict" for difference in result.differ)
    say(
        f"{result.played} episodes replayed (seed {result.seed}): {len(result.differ)} differ, "
        f"{verdicts} of them in the verdict. The run was made with ToolShift {made}, and this is "
        f"{version('toolshift')}."
    )
    for difference in result.differ[:MAX_SHOWN]:
        _print_difference(difference)
    if len(result.differ) > MAX_SHOWN:
        say(f"  and {len(result.differ) - MAX_SHOWN} more (--json has all)")


def _print_difference(difference: Difference) -> None:
    text = f"{verdict(difference.before)} -> {verdict(difference.after)}"
    say(
        f"  {difference.episode}: "
        f"{text if difference.what == 'verdict' else 'the verdict is confirmed'}"
    )
    if difference.step is None:
        say("    the trace is the same, so the verdict was altered or the rules have changed")
    else:
        say(f"    step {difference.step}, stored: {shown(difference.stored)}")
        say(f"    step {difference.step}, again:  {shown(difference.again)}")
