"""A report as Markdown, for pull requests and release notes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from toolshift.core.command_line import command
from toolshift.measure.diagnosis import bounds_of, percent, points, words
from toolshift.measure.metrics import Measures
from toolshift.measure.report import AgentReport, Report
from toolshift.measure.statistics import Interval
from toolshift.report import first_screen
from toolshift.report import summary as story
from toolshift.report.figures import LONGEST, share, shown
from toolshift.report.words import marks_of

_SPECIAL = re.compile(r"([\\`*_\[\]<>#|~!&$])")

LEGEND = (
    "Clean: accuracy on the unshifted tasks; shifted: on the same tasks under the shifts of the "
    "tier; change: the difference in points, with its 95% interval. Not significant: within "
    "chance (Holm over the tiers), or no greater than under the placebo arm."
)


def as_markdown(reports: Sequence[Report]) -> str:
    """A summary of some runs: for each agent a sentence, its tiers and what hurts most."""
    parts = [_run(report) for report in reports]
    return "\n\n".join(parts) + "\n"


def _run(report: Report) -> str:
    head = f"## ToolShift: {plain(report.suite)} ({plain(', '.join(report.worlds))})"
    if not report.agents:
        return f"{head}\n\nNo episode has been run."
    several = len(report.agents) > 1
    agents = [_agent(agent, several) for agent in report.agents]
    if any(agent.grid is None for agent in report.agents):
        return "\n\n".join([head, *agents, _foot(report)])
    facts = [_facts(agent, several) for agent in report.agents]
    below = "\n\n".join([*agents, _foot(report)])
    below = f"<details><summary>All measures, with intervals</summary>\n\n{below}\n\n</details>"
    return "\n\n".join([head, *facts, _what_to_do(report), below])


def _facts(agent: AgentReport, several: bool) -> str:
    """The sentence and the grid of an agent of a small suite."""
    grid = agent.grid
    assert grid is not None
    chosen = first_screen.shown_rows([grid], 40)
    letters = first_screen.key_of_causes([grid], shown=chosen[0])
    said = first_screen.sentence(agent, agent.name if several else "")
    lines = [f"**{plain(said, 4000)}**", ""]
    lines.append(f"| | {' | '.join(map(plain, grid.tasks))} |")
    lines.append("|---|" + "---|" * len(grid.tasks))
    for row in grid.rows:
        if row.label in chosen[0]:
            marks = [first_screen.mark(spot, letters) for spot in row.spots]
            bold = [f"**{m}**" if s.state in ("fails", "varies") else m
                    for m, s in zip(marks, row.spots, strict=True)]  # fmt: skip
            lines.append(f"| {plain(first_screen.row_words(row.label))} | {' | '.join(bold)} |")
    keys = [f"{letter} {first_screen.failure_in_words(cause)}" for cause, letter in letters.items()
            if letter != first_screen.OTHER]  # fmt: skip
    if len(keys) < len(letters):
        keys.append(f"{first_screen.OTHER} fails: another cause")
    keys += first_screen.marks_in_words([grid], chosen[0]) + first_screen.rest_in_words(chosen)
    return "\n".join([*lines, "", plain("; ".join(keys), 4000)]).rstrip()


def _what_to_do(report: Report) -> str:
    lines = []
    if mend := first_screen.first_to_mend(report.agents):
        who = f"{plain(mend.agent)}: " if len(report.agents) > 1 else ""
        see = f" (`{shown(command('trace', 'RUN', mend.episode), 80)}`)" if mend.episode else ""
        lines.append(f"- Fix first: {who}{plain(mend.todo or mend.what)}{see}.")
    sure = " ".join(first_screen.how_sure(report, report.agents))
    lines.append(f"- How sure: {plain(sure, 4000)}")
    return "\n".join(lines)


def _agent(agent: AgentReport, several: bool) -> str:
    marks = marks_of(agent)
    mark = f" ({plain(marks)})" if marks else ""
    parts = [f"### {plain(agent.name)}{mark}"] if several or mark else []
    parts.append(f"**{plain(story.headline(agent, '' if several else agent.name), 4000)}**")
    if agent.tiers:
        parts.append(_tiers(agent))
    if hurts := story.worst(agent.shifts):
        parts.append("\n".join(["What hurts most:", "", *(_hurt(row) for _, row in hurts)]))
    parts.append(_note(agent))
    return "\n\n".join(parts)


def _tiers(agent: AgentReport) -> str:
    lines = ["| tier | clean | shifted | change, points | |", "|---|---:|---:|---:|---|"]
    for row in agent.tiers:
        lines.append(
            f"| {plain(row.label)} | {_rate(row.clean)} | {_accuracy(row)} "
            f"| {_change(row)} | {_judged(row)} |"
        )
    lines += ["", LEGEND]
    return "\n".join(lines)


def _hurt(row: Measures) -> str:
    text = f"- {plain(words(row.label))}: {_change(row)} points"
    main = story.main_cause(row)
    if main is None:
        return f"{text}."
    cause, count, failures = main
    example = row.examples.get(cause, "")
    see = f", as in `{shown(example, 40).replace('`', '')}`" if example else ""
    return f"{text}; {plain(words(cause))} in {count} of {failures} failures{see}."


def _note(agent: AgentReport) -> str:
    """What a gate goes by: the verdict, and how sure it is."""
    verdict = {
        "breaks": "Breaks under shift",
        "unsure": "Fails more under a shift than clean"
        + (f": {doubts}" if (doubts := story.doubts(agent)) else ""),
        "unmeasured": "No significant loss where it was measured; not every shift was",
        "holds": "No significant loss",
        "undefined": f"Undefined: {story.UNDER_HALF}",
    }[story.verdict(agent)]
    sure = "; ".join(f"{name.lower()} {value}" for name, value in story.sureness(agent))
    return f"> **{verdict}.** {sure[0].upper()}{sure[1:]}."


def _foot(report: Report) -> str:
    seeds = ", ".join(map(str, report.seeds))
    return (
        f"{report.tasks} tasks, {report.trials} trial{'s' * (report.trials != 1)} each, "
        f"seeds {seeds}, plan `{report.plan_hash}`. Intervals are 95%."
    )


def _rate(value: Interval) -> str:
    text = percent(value)
    return "undefined" if text == "not defined" else text


def _accuracy(row: Measures) -> str:
    beside = f" ({bounds_of(row)})" if row.void_matters else ""
    return f"{_rate(row.accuracy)}{beside}"


def _change(row: Measures) -> str:
    if not row.defined:
        kept = row.retention
        keeps = f", keeps {share(kept.estimate)}" if kept.n else ""
        return f"undefined: {story.undefined_because(row)}{keeps}"
    return points(row.drop).removesuffix(" points")


def _judged(row: Measures) -> str:
    if not row.defined:
        return ""
    if not row.significant:
        return "not significant"
    return "**loses**" if row.drop.estimate > 0 else "gains"


def plain(text: object, longest: int = LONGEST) -> str:
    """Text that Markdown shows as it is: no markup, no link, no mention."""
    return _SPECIAL.sub(r"\\\1", shown(text, longest)).replace("@", "@<!-- -->")
