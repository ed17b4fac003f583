"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

Option = Callable[[Callable[..., Any]], Callable[..., Any]]


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
        type=int,
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
    click.option(
        "--timeout",
        type=float,
        help="chat: seconds of silence before giving up; programs: seconds for an episode (300).",
    ),
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
