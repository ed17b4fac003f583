"""What a reader sees first, in the same order everywhere: a sentence for each agent, the tasks by
changes, the first problem to fix, how sure it is, and what to do next.

For a small suite everything here is a fact of its tasks. Estimates are for suites of many tasks.
"""

from __future__ import annotations

import shlex
import sys
import textwrap
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import NamedTuple

from rich.cells import cell_len
from rich.text import Text

from toolshift.core.command_line import command
from toolshift.core.shift import TIERS
from toolshift.core.terminal import padded, wrapped
from toolshift.core.text import visible
from toolshift.episode.grade import UNCLEAR
from toolshift.measure.claims import in_words
from toolshift.measure.diagnosis import broke_down, drop_of, is_loss, opened, smallest_loss, words
from toolshift.measure.grid import CLEAN, Grid, GridRow, Spot
from toolshift.measure.report import AgentReport, Report
from toolshift.report import summary as story
from toolshift.report.tables import change, rate, row_of
from toolshift.report.words import empty_in_words, marks_of, unread_in_words
from toolshift.runs.plan import PLACEBO

MAX_NAMED, MAX_LINES = 12, 25
"""Tasks that have columns of their own, and the lines of a screen for so few."""
ROOM = ((7, 5), (7, 3), (6, 2), (5, 2), (4, 2), (3, 2), (3, 1), (2, 1))
"""How many changes and causes are shown: the first pair with which the screen is not too long."""
PERCENT_FROM = 60
"""Tasks from which a percentage is worth comparing."""
LETTERS = "ABCDE"
OTHER = "X"
INDENT = "  "
AS_IT_IS = "unchanged"


@dataclass(frozen=True)
class Mend:
    """Where to begin: what goes wrong, what to do, and an episode that shows it."""

    agent: str
    what: str
    todo: str
    episode: str


def sentence(agent: AgentReport, name: str = "") -> str:
    """What a reader who knows nothing else should know of an agent."""
    if agent.grid is None:
        return story.headline(agent, name)
    grid = agent.grid
    who = f"{name} solves" if name else "Solves"
    asked = [spot for spot in grid.clean.spots if spot.scored or spot.void]
    clean = grid.clean.spots if agent.claims is None else asked
    scored = [spot for spot in clean if spot.scored]
    if not scored:
        return story.headline(agent, name)
    text = f"{who} {grid.solved} of {_tasks(len(clean), 'unchanged')}"
    at_times = sum(spot.state == "varies" for spot in scored)
    beside = [f"{at_times} more only sometimes"] * bool(at_times)
    void, waiting = (sum(s.state == state for s in clean) for state in ("void", "not_run"))
    beside += [f"{void} without a verdict"] * bool(void)
    beside += [f"{waiting} not run yet"] * bool(waiting)
    text += f" ({', '.join(beside)})" if beside else ""
    text += _under_change(grid)
    if agent.crashed:
        text += f" {broke_down(agent.crashed, agent.everything.episodes)}"
    return visible(text)


def headline(agents: Sequence[AgentReport]) -> str:
    """One sentence about the agents of a small suite."""
    if len(agents) == 1:
        return sentence(agents[0])
    breaks = sum(bool(agent.grid and agent.grid.lost) for agent in agents)
    if not breaks:
        dead = any(_is_dead(row) for agent in agents if agent.grid for row in agent.grid.changes)
        beside = ", as far as it was measured" if dead else ""
        return f"None of {len(agents)} agents loses a task under any change{beside}"
    fail = "fails" if breaks == 1 else "fail"
    return f"{breaks} of {len(agents)} agents {fail} tasks that they solve unchanged".replace(
        "fails tasks that they solve", "fails tasks that it solves"
    )


def _under_change(grid: Grid) -> str:
    """What became of the tasks that it solves, and what is not known."""
    dead = [row for row in grid.changes if _is_dead(row)]
    if not grid.scored:
        if not dead:
            broken = [words(row.label) for row in grid.changes if row.broken]
            verb = "is" if len(broken) == 1 else "are"
            why = f": {', '.join(broken)} {verb} broken" if broken else ""
            return f". No change was tried{why}."
        return ". Not measured under any change: no episode with one has a verdict."
    if not grid.solved:
        return ", so no change can lower this."
    text = _lost(grid)
    if dead:
        names = ", ".join(words(row.label) for row in dead)
        text += f" Not measured under {names}: no episode has a verdict."
    open_ = sum(
        clean.state == "passes" and any(row.spots[at].void for row in grid.changes)
        for at, clean in enumerate(grid.clean.spots)
    )
    if open_ and not dead:
        which = "of them have" if open_ > 1 else "of them has"
        text += f" {open_} {which} no verdict under some change."
    return text


def _is_dead(row: GridRow) -> bool:
    """Whether episodes of a row were run, and none of them has a verdict."""
    return any(s.void for s in row.spots) and not any(s.scored for s in row.spots)


def _lost(grid: Grid) -> str:
    """Which of the tasks that it solves fail under a change, and by what."""
    if not grid.lost:
        tried = "was measured" if any(map(_is_dead, grid.changes)) else "was tried"
        return f", and loses none under any change that {tried}."
    which = f"{grid.lost} of them fail" if grid.lost > 1 else "1 of them fails"
    if grid.lost == grid.solved:
        which = "all of them fail" if grid.lost > 1 else "it fails"
    cause = story.cause_in_words(grid.losses[0].cause)
    often = "" if len(grid.losses) == 1 else "most often, "
    return f"; {which} under some change: {often}{cause}."


def _tasks(number: int, which: str = "") -> str:
    return f"{number} {which}{' ' * bool(which)}task{'s' * (number != 1)}"


def first_to_mend(agents: Iterable[AgentReport]) -> Mend | None:
    """The commonest cause of what is lost, over the agents; None where nothing is."""
    found: list[tuple[int, Mend]] = []
    for agent in agents:
        if agent.grid is not None and agent.grid.losses:
            loss = agent.grid.losses[0]
            found.append((loss.episodes, _mend(agent.name, loss.cause, loss.episode)))
        elif agent.grid is None and (hurts := story.worst(agent.shifts, 1)):
            row = hurts[0][1]
            if main := story.main_cause(row):
                found.append((main[1], _mend(agent.name, main[0], row.examples.get(main[0], ""))))
    return max(found, key=lambda pair: pair[0])[1] if found else None


def _mend(agent: str, cause: str, episode: str) -> Mend:
    return Mend(agent, story.cause_in_words(cause), story.phrases()["next"].get(cause, ""), episode)


def how_sure(report: Report, agents: Sequence[AgentReport]) -> list[str]:
    """How far the findings go, in sentences."""
    small = all(agent.grid is not None for agent in agents)
    if small:
        these = "this" if report.tasks == 1 else "these"
        often = f", {report.trials} times each" if report.trials > 1 else ", once each"
        again = "" if report.trials > 1 else " To see if this repeats: --trials 5."
        lines = [
            f"this is what happened in {these} {_tasks(report.tasks)}{often}.{again} To compare "
            f"agents in percent, use {PERCENT_FROM} tasks or more."
        ]
        for agent in agents:
            for void in agent.grid.voids if agent.grid else ():
                one = f"{void.episodes} episode{'s' * (void.episodes != 1)}"
                have = "have" if void.episodes > 1 else "has"
                who = f" of {agent.name}" if len(agents) > 1 else ""
                lines.append(
                    f"{one}{who} {have} no verdict ({words(void.cause)}): {opened(void.episode)}."
                )
    else:
        lines = []
        for agent in agents:
            who = f"{agent.name}: " if len(agents) > 1 else ""
            parts = []
            if smallest := smallest_loss(agent.tiers):
                parts.append(f"the smallest detectable loss of a tier is {smallest}")
            if agent.placebo is not None and agent.placebo.defined:
                parts.append(f"the placebo changes it by {drop_of(agent.placebo)}")
            if agent.everything.void:
                low, high = agent.everything.bounds
                parts.append(
                    f"{agent.everything.void} episodes have no verdict, so its accuracy over all "
                    f"lies between {low:.0%} and {high:.0%}"
                )
            if parts:
                lines.append(f"{who}{'; '.join(parts)}.")
    for agent in agents:
        who = f"{agent.name}: " if len(agents) > 1 else ""
        lines += [f"{who}{line}" for line in in_words(agent.claims or ())]
    lines += [
        f"{a.name}: not every planned episode has been run." for a in agents if not a.complete
    ]
    return lines


# -- marks ---------------------------------------------------------------------------------------


def mark(spot: Spot, letters: Mapping[str, str]) -> str:
    """A cell of the grid: "ok", the letter of its cause, or "2/5 A" where outcomes differ."""
    if spot.state == "varies":
        return f"{spot.passed}/{spot.scored} {letters[spot.cause]}"
    return "ok" if spot.state == "passes" else short_mark(spot, letters)


def short_mark(spot: Spot, letters: Mapping[str, str]) -> str:
    """The same as one character."""
    if spot.state == "varies":
        return letters[spot.cause].lower()
    if spot.state == "fails":
        return letters[spot.cause]
    return {"passes": ".", "void": "?", "not_applicable": "-", "not_run": "_"}[spot.state]


def failure_in_words(cause: str) -> str:
    """Why an episode is not passed; an unclear answer may be right."""
    clause = story.cause_in_words(cause)
    return clause if cause == UNCLEAR else f"fails: {clause}"


def spot_in_words(spot: Spot) -> str:
    """A cell of the grid as a reader is told it."""
    if spot.state == "varies":
        cause = story.cause_in_words(spot.cause)
        return f"passes {spot.passed} of {spot.scored}; else {cause}"
    if spot.state == "fails":
        return failure_in_words(spot.cause)
    if spot.state == "void":
        return f"no verdict: {words(spot.cause)}"
    return {"passes": "passes", "not_applicable": "does not apply", "not_run": "not run yet"}[
        spot.state
    ]


def marks_in_words(grids: Sequence[Grid], labels: Sequence[str], short: bool = False) -> list[str]:
    """What the marks other than letters mean; those alone that are there."""
    states = {spot.state for grid in grids for one in labels for spot in _row(grid, one).spots}
    said = ["small letter: sometimes" if short else "2/5: passes 2 of 5 (trials, severities)"]
    said = said if "varies" in states else []
    said += [". passes"] if short else []
    said += ["- does not apply"] * ("not_applicable" in states)
    said += ["_ not run yet"] * ("not_run" in states)
    return said + ["? no verdict"] * ("void" in states)


def rest_in_words(chosen: ShownRows) -> list[str]:
    """What is not among the rows that `shown_rows` chose."""
    _, more, fine, nowhere, waiting, broken = chosen
    parts = []
    if more:
        parts.append(f"{more} more change{'s have' if more > 1 else ' has'} failures")
    if fine:
        parts.append(f"{fine} change{'s have' if fine > 1 else ' has'} no failure")
    if nowhere:
        parts.append(f"{nowhere} change{'s apply' if nowhere > 1 else ' applies'} to no task")
    if broken:
        parts.append(f"{broken} change{'s are' if broken > 1 else ' is'} broken")
    if waiting:
        parts.append(f"{waiting} change{'s' * (waiting > 1)} not run yet")
    return parts


# -- in the terminal -----------------------------------------------------------------------------


def first_screen(
    report: Report,
    agents: Sequence[AgentReport],
    width: int,
    run: Path | None,
    everything: bool = False,
) -> list[Text]:
    """The lines of the first screen; `everything` shows each row of the grid."""
    above = [Text(visible(_title(report, agents)), style="bold")]
    several = len(agents) > 1
    for number, agent in enumerate(agents, 1):
        marks = marks_of(agent)
        name = f"{agent.name} ({marks})" if marks else agent.name
        lead = f"[{number}] " if several else ""
        above += _wrapped(lead + _of_run(sentence(agent, name), run), width, " " * len(lead))
        if agent.unread:
            above += _wrapped(_of_run(f"{unread_in_words(agent.unread)}.", run), width, "")
        if agent.empty:
            above += _wrapped(_of_run(f"{empty_in_words(agent.empty)}.", run), width, "")
    below = _what_to_do(report, agents, width, run, everything)
    grids = [agent.grid for agent in agents if agent.grid is not None]
    if not grids or len(grids) < len(agents):
        return [*above, Text(), *_tier_lines(agents, width), Text(), *below]
    for rows, causes in ROOM:
        picture = _Picture(grids, width, sys.maxsize if everything else rows, causes).lines()
        lines = [*above, Text(), *picture, Text(), *below]
        if everything or len(grids[0].tasks) > MAX_NAMED or len(lines) <= MAX_LINES:
            break
    return lines


def _what_to_do(
    report: Report, agents: Sequence[AgentReport], width: int, run: Path | None, everything: bool
) -> list[Text]:
    """The first thing to mend, how sure it is, and the next commands."""
    lines = []
    place = "RUN" if run is None else run
    if mend := first_to_mend(agents):
        who = f"{mend.agent}: " if len(agents) > 1 else ""
        lines += _wrapped(f"Fix first: {who}{mend.todo or mend.what}.", width, INDENT)
        if mend.episode:
            lines.append(Text(INDENT + command("trace", place, mend.episode)))
    if sure := " ".join(how_sure(report, agents)):
        lines += _wrapped(_of_run(f"How sure: {sure}", run), width, INDENT)
    if not everything:
        shown, more = (command("report", place, option) for option in ("--open", "--details"))
        lines.append(Text(f"Next: {shown}      every trace, in the browser"))
        lines.append(Text(f"      {more}   all measures"))
    return lines


def _title(report: Report, agents: Sequence[AgentReport]) -> str:
    episodes = sum(agent.everything.episodes for agent in agents)
    trials = f", {report.trials} trials each" if report.trials > 1 else ""
    return (
        f"ToolShift: {report.suite}, {', '.join(report.worlds)}; {_tasks(report.tasks)}{trials}, "
        f"{episodes} episodes"
    )


def _of_run(text: str, run: Path | None) -> str:
    return text if run is None else text.replace(" RUN ", f" {shlex.quote(str(run))} ")


def _wrapped(text: str, width: int, indent: str) -> list[Text]:
    """Lines of whole words; a word that is longer than a line stays whole, to be copied."""
    return [Text(line) for line in wrapped(visible(text), width, indent)]


def row_words(label: str) -> str:
    """The label of a row of a grid in words."""
    if label == CLEAN:
        return AS_IT_IS
    return "nothing that matters (placebo)" if label == PLACEBO else story.in_words(label)


def key_of_causes(
    grids: Iterable[Grid], most: int = len(LETTERS), shown: Collection[str] | None = None
) -> dict[str, str]:
    """A letter for each cause of failure, the commonest first; `OTHER` for the rare ones.

    Of `shown`, the labels of rows, causes are counted that stand there; of all rows where None.
    """
    counts: Counter[str] = Counter()
    for grid in grids:
        for row in grid.rows:
            for spot in row.spots if shown is None or row.label in shown else ():
                if spot.state in ("fails", "varies"):
                    counts[spot.cause] += spot.scored - spot.passed
    ranked = [cause for cause, _ in counts.most_common()]
    return {cause: LETTERS[at] if at < most else OTHER for at, cause in enumerate(ranked)}


class ShownRows(NamedTuple):
    """Which rows of a grid are shown, and how many are not.

    Attributes:
        labels: of the rows that are shown.
        more: changes with failures that are not.
        fine: changes without a failure that are not.
        nowhere: changes that apply to no task.
        waiting: changes that apply, of which no episode has been run.
        broken: changes whose own code fails.
    """

    labels: list[str]
    more: int
    fine: int
    nowhere: int
    waiting: int
    broken: int = 0


def shown_rows(grids: Sequence[Grid], most: int) -> ShownRows:
    """The rows with failures, at most so many, or all that were played where that is enough."""
    rank: dict[str, tuple[int, int]] = {}
    labels = [row.label for row in grids[0].rows]
    for label in labels:
        rows = [_row(grid, label) for grid in grids]
        failing = sum(spot.state in ("fails", "varies") for row in rows for spot in row.spots)
        lost = sum(row.lost for row in rows)
        rank[label] = (-lost, -failing)
    changes = [label for label in labels if label not in (CLEAN, PLACEBO)]
    bad = sorted((one for one in changes if any(rank[one])), key=lambda one: rank[one])
    played = [
        one for one in changes if any(s.scored or s.void for g in grids for s in _row(g, one).spots)
    ]
    waiting = sum(
        one not in played and any(s.state == "not_run" for g in grids for s in _row(g, one).spots)
        for one in changes
    )
    broken = sum(one not in played and _row(grids[0], one).broken for one in changes)
    fine, nowhere = len(played) - len(bad), len(changes) - len(played) - waiting - broken
    placebo = [PLACEBO] * (PLACEBO in rank and rank[PLACEBO][0] < 0)
    if most >= len(played):
        return ShownRows([*labels[:1], *placebo, *played], 0, 0, nowhere, waiting, broken)
    shown = [*labels[:1], *placebo, *bad[:most]]
    return ShownRows(shown, len(bad[most:]), fine, nowhere, waiting, broken)


def _row(grid: Grid, label: str) -> GridRow:
    return next(row for row in grid.rows if row.label == label)


class _Picture:
    """The tasks by changes as lines of text."""

    def __init__(self, grids: Sequence[Grid], width: int, most: int, causes: int) -> None:
        self.grids, self.width = grids, width
        self.chosen = shown_rows(grids, most)
        self.labels = self.chosen.labels
        self.letters = key_of_causes(grids, causes, self.labels)
        self.tasks = grids[0].tasks
        rows = [_row(grid, label) for grid in grids for label in self.labels]
        self.used = {
            self.letters[spot.cause]: spot.cause
            for row in rows
            for spot in row.spots
            if spot.state in ("fails", "varies")
        }

    def lines(self) -> list[Text]:
        longest = max(len(row_words(label)) for label in self.labels)
        if len(self.grids) == 1 and len(self.tasks) <= MAX_NAMED:
            head, cells = self._columns(longest)
        else:
            head, cells = self._strings(longest)
        room = self.width - cell_len(head) - 2
        lines = [Text((" " * (min(longest, room) + 2) + head).rstrip())] if head.strip() else []
        for label, cell in zip(self.labels, cells, strict=True):
            folded = textwrap.wrap(row_words(label), max(12, room), break_on_hyphens=False)
            for place, part in enumerate(folded):
                line = Text(part.ljust(min(longest, room) + 2))
                line = line + cell if place == len(folded) - 1 else line
                line.rstrip()
                lines.append(line)
        return [*lines, *self._rest(), *self._key()]

    def _columns(self, longest: int) -> tuple[str, list[Text]]:
        """A column for each task, under its name where there is room, else under its number."""
        marks = [
            [mark(spot, self.letters) for spot in _row(self.grids[0], one).spots]
            for one in self.labels
        ]
        self.numbered = False
        names = [visible(task) for task in self.tasks]
        widest = max(len(mark) for row in marks for mark in row)
        if (
            sum(max(cell_len(name), widest) + 2 for name in names) + min(longest, 34) + 2
            > self.width
        ):
            names = [str(at) for at in range(1, len(names) + 1)]
            self.numbered = True
        widths = [max(cell_len(name), widest) for name in names]
        head = "  ".join(map(padded, names, widths))
        return head, [_styled("  ".join(map(str.ljust, row, widths))) for row in marks]

    def _strings(self, longest: int) -> tuple[str, list[Text]]:
        """A string of one mark a task for each agent, in fives; counts where that is too wide."""
        self.numbered = True
        rows = [
            [
                _fives("".join(short_mark(spot, self.letters) for spot in _row(grid, one).spots))
                for grid in self.grids
            ]
            for one in self.labels
        ]
        wide = len(rows[0][0])
        if len(self.grids) * (wide + 2) + 24 > self.width:
            self.numbered = False
            rows = [[_count(_row(grid, one)) for grid in self.grids] for one in self.labels]
            wide = max(len(cell) for row in rows for cell in row)
        wide = max(wide, 4)
        if len(self.grids) > 1:
            head = "  ".join(f"[{at}]".ljust(wide) for at in range(1, len(self.grids) + 1))
        else:
            head = "".join(str(at).ljust(6) for at in range(1, len(self.tasks) + 1, 5))
        head = head.ljust(len(self.grids) * (wide + 2) - 2)
        return head, [_styled("  ".join(cell.ljust(wide) for cell in row)) for row in rows]

    def _rest(self) -> list[Text]:
        parts = rest_in_words(self.chosen)
        return [Text(f"({'; '.join(parts)})", style="dim")] if parts else []

    def _key(self) -> list[Text]:
        columns = len(self.grids) == 1 and len(self.tasks) <= MAX_NAMED
        counts = not columns and not self.numbered
        lines = [Text()]
        for letter in sorted(self.used) if not counts else ():
            cause = self.used[letter]
            text = "fails: another cause" if letter == OTHER else failure_in_words(cause)
            lines.append(Text(f"{letter}  {text}"))
        said = marks_in_words(self.grids, self.labels, short=not columns)
        if counts:
            said = ["tasks that always pass, of those that have a verdict"]
        lines += _wrapped("; ".join(said), self.width, "") if said else []
        if self.numbered:
            lines += _listed(
                [f"{at} {visible(task)}" for at, task in enumerate(self.tasks, 1)], self.width
            )
        return lines if len(lines) > 1 else []


def _listed(items: Sequence[str], width: int) -> list[Text]:
    """The names of the tasks, none of them broken."""
    lines = ["Tasks: "]
    for item in items:
        if cell_len(lines[-1]) + cell_len(item) > width and lines[-1] != "Tasks: ":
            lines.append(INDENT)
        lines[-1] += f"{item}  "
    return [Text(line.rstrip()) for line in lines]


def _fives(marks: str) -> str:
    return " ".join(marks[at : at + 5] for at in range(0, len(marks), 5))


def _count(row: GridRow) -> str:
    scored = [spot for spot in row.spots if spot.scored]
    return f"{sum(s.state == 'passes' for s in scored)} of {len(scored)}" if scored else "-"


def _styled(cells: str) -> Text:
    text = Text(cells)
    text.highlight_regex(r"(?<!o)[A-EXa-e](?!k)", "bold red")
    return text


def _tier_lines(agents: Sequence[AgentReport], width: int) -> list[Text]:
    """Many tasks: accuracy clean and in each tier, named by what it asks of an agent."""
    tiers = [tier for tier in (*TIERS, "composed") if any(row_of(a.tiers, tier) for a in agents)]
    labels = {CLEAN: "unchanged tasks"} | {
        tier: f"{story.phrases()['abilities'][tier]} ({tier})" for tier in tiers
    }
    rows = []
    for label in labels:
        cells = []
        for agent in agents:
            row = agent.clean if label == CLEAN else row_of(agent.tiers, label)
            if row is None:
                cells.append("-")
                continue
            cell = rate(row.stated)
            if label != CLEAN and not isnan(row.drop.estimate):
                cell += f" ({change(row.drop)[0]}{'*' if is_loss(row) else ''})"
            cells.append(cell)
        rows.append(cells)
    wide = max(len(cell) for row in rows for cell in row)
    room = min(max(map(len, labels.values())), width - len(agents) * (wide + 2))
    lines = []
    if len(agents) > 1:
        head = "  ".join(f"[{at}]".ljust(wide) for at in range(1, len(agents) + 1))
        lines.append(Text(f"{'':{room}}  {head}".rstrip()))
    for label, cells in zip(labels.values(), rows, strict=True):
        parts = textwrap.wrap(label, room)
        lines += [Text(part) for part in parts[:-1]]
        lines.append(Text(f"{parts[-1]:{room}}  " + "  ".join(c.ljust(wide) for c in cells)))
    lines += _wrapped(
        "Tasks passed, and in brackets the change in points; * more than chance and the placebo "
        "can explain.",
        width,
        "",
    )
    return lines
