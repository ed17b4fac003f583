"""The help of long commands: what a newcomer needs, and all of it under headings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from toolshift.core.terminal import say

HEADINGS = {
    "Tasks": (
        "suite", "worlds", "kinds", "shifts", "without", "severities", "tasks", "trials",
        "design", "budget", "holds_within", "baseline", "margin", "by", "seal", "plan", "data",
        "count", "alpha", "slips", "share",
    ),
    "Agents": (
        "agent", "agents", "commands", "urls", "agent_timeout", "isolate", "baseline_agent",
        "base_url", "protocol", "max_cost", "price_in", "price_out", "judge", "judge_url", "preset",
        "model", "adapter", "full", "rank", "layout",
    ),
    "Output": (
        "out", "estimate", "only_distinguishable", "inconclusive", "junit", "markdown", "bundle",
        "as_json", "show_mask", "sarif", "fail_on", "grouping", "html", "no_html", "svg", "site",
        "open_",
    ),
}  # fmt: skip
"""Headings of the help of long commands, and the parameters below them; others are advanced."""

HELP_ALL = "--help-all"
_ALL = "toolshift:help-all"


class Sectioned(click.Command):
    """A command of many options: --help shows the first ones, --help-all each under a heading.

    `first` are the parameters that a newcomer needs, in the order in which they are of use.
    """

    def __init__(self, *given: Any, first: Sequence[str] = (), **more: Any) -> None:
        super().__init__(*given, **more)
        self.first = tuple(first)
        count = sum(isinstance(param, click.Option) for param in self.params)
        self.params.append(
            click.Option(
                [HELP_ALL],
                is_flag=True,
                is_eager=True,
                expose_value=False,
                callback=_show_all,
                help=f"Show all {count} options and exit.",
            )
        )

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the first options; or each heading with its options, in the order they have."""
        shown = [
            (param, record)
            for param in self.get_params(ctx)
            if isinstance(param, click.Option) and (record := param.get_help_record(ctx))
        ]
        if self.first and not ctx.meta.get(_ALL):
            order = {name: place for place, name in enumerate((*self.first, "help_all"))}
            kept = [(order.get(str(param.name), len(order)), record) for param, record in shown
                    if param.name in order or "--help" in param.opts]  # fmt: skip
            with formatter.section("Options"):
                formatter.write_dl([record for _, record in sorted(kept)])
            return
        place = {name: heading for heading, names in HEADINGS.items() for name in names}
        sections: dict[str, list[tuple[str, str]]] = {name: [] for name in (*HEADINGS, "Advanced")}
        for param, record in shown:
            sections[place.get(param.name or "", "Advanced")].append(record)
        for heading, records in sections.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


def _show_all(context: click.Context, _param: click.Parameter, value: bool) -> None:
    """Prints the whole help, and ends."""
    if value and not context.resilient_parsing:
        context.meta[_ALL] = True
        say(context.get_help())
        context.exit()
