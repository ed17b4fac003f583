"""A report in the terminal: four tiers by agent, then shifts, causes and sentences."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from io import StringIO
from math import isnan
from pathlib import Path

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from toolshift.core.shift import TIERS
from toolshift.core.terminal import marked, wrapped
from toolshift.core.text import visible
from toolshift.measure.diagnosis import bounds_of, drop_of, kinds, smallest_loss, words
from toolshift.measure.metrics import Measures
from toolshift.measure.report import AgentReport, Report, Skipped, draws_entities
from toolshift.report.first_screen import first_screen
from toolshift.report.tables import (
    BEHAVIOUR,
    behaviour_table,
    change,
    change_all,
    group_table,
    groups_of,
    rate,
    row_of,
    shift_table,
)
from toolshift.report.words import judged_in_words, marks_of, unclear_in_words

MAX_DETAILED = 3
LEGEND = (
    "Change of accuracy in points against the same tasks clean (unshifted), with its 95% "
    "interval. * significant: differs from chance (Holm over the tiers, Benjamini-Hochberg over "
    "the shifts) and from the placebo arm. 'keeps' is the accuracy on tasks passed clean, shown "
    "if clean accuracy is under 50%, where a drop is not defined. 'all' is the change with void "
    "episodes as failures, shown if they are more or less frequent than clean; (low-high) is "
    "accuracy with void episodes as failures and as passes, shown if more than 2% are void. "
    "Refuses unsolv.: share of unsolvable tasks refused; refuses solv.: wrong refusals, share of "
    "solvable tasks refused."
)
NOT_SIGNIFICANT = " n.s.: not significant."


def as_text(
    report: Report, width: int = 100, only_distinguishable: bool = False, details: bool = False
) -> str:
    """The report as plain text: the first screen, and all measures if `details`."""
    console = Console(file=StringIO(), width=width, color_system=None, legacy_windows=False)
    print_report(report, console, only_distinguishable, details=details)
    file = console.file
    assert isinstance(file, StringIO)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines()) + "\n"


def print_report(
    report: Report,
    console: Console,
    only_distinguishable: bool = False,
    agent: str = "",
    grouping: str = "",
    run: Path | None = None,
    details: bool = False,
) -> None:
    """Prints the first screen; all measures too, if asked for or if a choice is of them."""
    agents = [report.agent(agent)] if agent else report.agents
    details = details or only_distinguishable or bool(agent) or bool(grouping)
    if not agents:
        console.print(_headline(report))
        _print_left_out(report, console)
        console.print("No episode has been run.")
        return
    console.print()
    for line in first_screen(report, agents, console.width, run, details):
        console.print(line, soft_wrap=True)
    _print_unclear(agents, console, run)
    _print_left_out(report, console, details)
    if not details:
        return
    console.print(_headline(report))
    _print_tiers(agents, only_distinguishable, console)
    console.print(Text(LEGEND + NOT_SIGNIFICANT * only_distinguishable, style="dim"))
    for agent_report in agents:
        if grouping:
            _print_group(agent_report, console, grouping)
        else:
            _print_agent(
                agent_report, console, only_distinguishable, len(agents) <= MAX_DETAILED, run
            )
    if grouping or (
        len(agents) <= MAX_DETAILED and any(agent_report.shifts for agent_report in agents)
    ):
        console.print(Text(f"\n{BEHAVIOUR}", style="dim"))
    if len(agents) > MAX_DETAILED:
        console.print(
            Text(
                _of_run(
                    "An episode: toolshift trace RUN ID. More tables: toolshift report RUN "
                    "--agent NAME, or --table kinds",
                    run,
                ),
                style="dim",
            )
        )
    for skipped in report.skipped:
        console.print(Text(visible(_skipped(skipped)), style="dim"))
    console.print(_footer(report, agents))


def _print_unclear(agents: Sequence[AgentReport], console: Console, run: Path | None) -> None:
    """Prints how many answers of each agent are unclear."""
    for agent in agents:
        if text := unclear_in_words(agent.everything):
            console.print(Text(visible(f"{agent.name}: {_of_run(text, run)}.")))


def _print_left_out(report: Report, console: Console, details: bool = True) -> None:
    """What was not run; in short, what is broken alone, since the grid shows what does not fit."""
    for line in left_out(report):
        if details or line.startswith("Broken"):
            console.print(Text(visible(line)))


def _headline(report: Report) -> str:
    worlds = ", ".join(report.worlds)
    seeds = report.seeds
    seed = f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"
    return f"\n[bold]ToolShift[/bold]  {report.suite}  ({worlds}; {report.pool} pool; {seed})"


def _print_tiers(
    agents: Sequence[AgentReport], only_distinguishable: bool, console: Console
) -> None:
    """Prints the tiers of each agent; where their names leave no room, under numbers."""
    names = [_marked_name(agent) for agent in agents]
    table = _tier_table(agents, names, only_distinguishable, console.width)
    if (
        Measurement.get(console, console.options.update(max_width=10_000), table).maximum
        > console.width
    ):
        numbers = [f"[{number}]" for number in range(1, len(agents) + 1)]
        for number, name in zip(numbers, names, strict=True):
            console.print(Text(visible(f"{number} {name}")), soft_wrap=True)
        table = _tier_table(agents, numbers, only_distinguishable, console.width)
    console.print(table)


_UNLIMITED = 10_000
"""Columns of a terminal on which every table has room."""


def _marked_name(agent: AgentReport) -> str:
    marks = marks_of(agent)
    mark = f"{agent.name} ({marks})" if marks else agent.name
    return mark if agent.complete else f"{mark} (unfinished)"


def _tier_table(
    agents: Sequence[AgentReport], names: Sequence[str], only_distinguishable: bool, width: int
) -> Table:
    apart = 2 if width >= 90 else 1
    table = Table(box=None, pad_edge=False, padding=(0, apart, 0, 0), header_style="bold")
    table.add_column("", no_wrap=True)
    labels = [t for t in (*TIERS, "composed") if any(row_of(a.tiers, t) for a in agents)]
    for column in ("clean", *labels):
        table.add_column(column, no_wrap=True)
    refusing = any(a.everything.unsolvable for a in agents)
    if refusing:
        table.add_column("refuses\nunsolv.")
        table.add_column("refuses\nsolv.")
    for agent, name in zip(agents, names, strict=True):
        cells = [_tier_cell(row_of(agent.tiers, label), only_distinguishable) for label in labels]
        if refusing:
            cells += [rate(agent.everything.refusal_rate), rate(agent.everything.wrong_refusal)]
        table.add_row(marked(name), _accuracy(agent.clean), *cells)
    return table


def _accuracy(row: Measures) -> str:
    """Accuracy, with its bounds beside it where void episodes are more than a few."""
    if not row.void_matters or isnan(row.accuracy.estimate):
        return rate(row.accuracy)
    low, high = row.bounds
    return f"{rate(row.accuracy)} ({100 * low:.0f}-{100 * high:.0f})"


def _tier_cell(row: Measures | None, only_distinguishable: bool) -> str:
    if row is None:
        return "-"
    strict = f"\n[dim]{marked(strictly)}[/dim]" if (strictly := change_all(row)) else ""
    if not row.defined:
        kept = row.retention.estimate
        keeps = "" if isnan(kept) else f"\n[dim]keeps {100 * kept:.0f}%[/dim]"
        return f"[dim]{_accuracy(row)} acc.[/dim]{keeps}{strict}"
    if not row.significant and only_distinguishable:
        return f"[dim]n.s.[/dim]{strict}"
    middle, limits = change(row.drop)
    if not row.significant:
        return f"[dim]{middle}\n{marked(limits)}[/dim]{strict}"
    return f"[bold]{middle} *[/bold]\n{marked(limits)}{strict}"


def _print_group(agent: AgentReport, console: Console, grouping: str) -> None:
    rows = groups_of(agent, grouping)
    console.print(f"\n[bold]{marked(agent.name)}[/bold]")
    console.print(group_table(rows))
    console.print()
    console.print(behaviour_table([agent.clean, *rows]))


def _print_agent(
    agent: AgentReport,
    console: Console,
    only_distinguishable: bool,
    detailed: bool,
    run: Path | None,
) -> None:
    console.print(f"\n[bold]{marked(agent.name)}[/bold]")
    if detailed and agent.shifts:
        shown = [row for row in agent.shifts if row.significant or not only_distinguishable]
        rest = [row for row in agent.shifts if row not in shown]
        if shown:
            console.print(shift_table(shown, agent.severities))
        console.print()
        console.print(behaviour_table([agent.clean, *agent.tiers]))
        if rest:
            names = ", ".join(row.label for row in rest)
            console.print(Text(visible(f"not significant: {names}"), style="dim"))
    for sentence in agent.diagnosis:
        for line in wrapped(visible(_of_run(sentence, run)), console.width - 2, "  "):
            console.print(Text(f"  {line}"), soft_wrap=True)
    if len(agent.weaknesses) > 1:
        causes = ", ".join(f"{words(w.cause)} {w.failures}" for w in agent.weaknesses[:6])
        console.print(f"  Causes of failure: {causes}.", highlight=False)


def _of_run(text: str, run: Path | None) -> str:
    """A text whose commands name the folder of the run."""
    return text if run is None else text.replace(" RUN ", f" {shlex.quote(str(run))} ")


def left_out(report: Report) -> list[str]:
    """What of the plan was not run, in a line each: shifts that do not fit, and broken ones."""
    nowhere = [skipped for skipped in report.skipped if skipped.skipped == skipped.tried]
    reasons = Counter(next(iter(skipped.reasons)) for skipped in nowhere)
    lines = []
    if report.skipped:
        text = f"{len(nowhere)} shifts apply to none of these tasks"
        text += f" ({_listed(reasons)})" if reasons else ""
        some = len(report.skipped) - len(nowhere)
        lines.append(f"Left out: {text}; {some} apply only to some of them. Each is listed below.")
    lines += [
        f"Broken: {broken.shift} raised in {broken.scene}: {broken.said}. Left out or void: "
        f"{broken.scenes} scenes, {broken.episodes} episodes."
        for broken in report.broken
    ]
    return lines


def _listed(reasons: Counter[str]) -> str:
    """The two commonest reasons with their numbers, and how many there are beside."""
    parts = [f"{number}: {why}" for why, number in reasons.most_common(2)]
    rest = sum(reasons.values()) - sum(number for _, number in reasons.most_common(2))
    return "; ".join([*parts, *([f"{rest}: other reasons"] if rest else [])])


def _skipped(skipped: Skipped) -> str:
    why = next(iter(skipped.reasons))
    more = f" and {len(skipped.reasons) - 1} more reasons" if len(skipped.reasons) > 1 else ""
    return (
        f"{skipped.shift} not applicable: {skipped.skipped} of {skipped.tried}, because {why}{more}"
    )


def _footer(report: Report, agents: Sequence[AgentReport]) -> Text:
    size = f" of {report.size} entities a world" if draws_entities(report.worlds) else ""
    lines = [
        f"{report.tasks} tasks, {report.trials} trial{'s' * (report.trials != 1)} each, "
        f"{sum(a.everything.episodes for a in agents)} episodes{size}."
    ]
    for agent in agents:
        lines.append(f"{agent.name}: {'; '.join(_quality(agent))}")
    return Text(visible("\n".join(["", *lines])), style="dim")


def _quality(agent: AgentReport) -> list[str]:
    parts = [f"{agent.infrastructure} infrastructure errors"]
    if agent.misunderstood:
        parts.append(f"{agent.misunderstood} episodes with a question the user did not understand")
    if agent.everything.void:
        parts.append(
            f"{agent.everything.void} episodes void: {kinds(agent.everything.void_kinds)} "
            f"(accuracy {bounds_of(agent.everything)})"
        )
    if agent.placebo is None:
        parts.append("no placebo arm, so no noise floor")
    elif agent.placebo.defined:
        parts.append(f"noise floor (placebo) {drop_of(agent.placebo)}")
    if not isnan(agent.everything.flip_rate):
        parts.append(f"flip rate {100 * agent.everything.flip_rate:.0f}%")
    if smallest := smallest_loss(agent.tiers):
        parts.append(f"smallest detectable drop of a tier: {smallest}")
    parts += _prose(agent)
    if agent.input_tokens:
        parts.append(f"{agent.input_tokens:,} tokens in, {agent.output_tokens:,} out")
    if agent.cost:
        parts.append(f"${agent.cost:.4f}")
    return parts


def _prose(agent: AgentReport) -> list[str]:
    """How much ended in prose, and who read it."""
    parts = []
    if agent.everything.prose > 0:
        refused = (
            100 * agent.everything.refused_by_protocol,
            100 * agent.everything.refused_in_prose,
        )
        parts.append(
            f"{100 * agent.everything.prose:.0f}% ended in prose (refused: {refused[0]:.0f}% by "
            f"protocol, {refused[1]:.0f}% in prose)"
        )
    if agent.judged:
        parts.append(judged_in_words(agent.judged))
    return parts
