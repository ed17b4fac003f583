"""Estimates the cost of a run over a paid endpoint before it starts."""

from __future__ import annotations

from typing import Any

import msgspec

from toolshift.agents.batches import PRICE
from toolshift.agents.catalog import is_free
from toolshift.agents.chat import estimate
from toolshift.core.message import PROTOCOL_TOOLS
from toolshift.core.tool import JSON, as_openai
from toolshift.episode.episode import messages
from toolshift.runs.cell import build
from toolshift.runs.plan import Plan

BYTES_PER_TOKEN = 4
DETOURS = 1.5
"""Turns of a usual agent for each turn of the oracle; a struggling one may take twice as many."""


class Estimate(msgspec.Struct, frozen=True):
    """The episodes, turns and tokens that an agent will need, and their price where known.

    For an agent that runs on this machine, only the episodes are counted.
    """

    agent: str
    episodes: int
    turns: int
    input_tokens: int
    output_tokens: int
    dollars: float | None

    @property
    def text(self) -> str:
        """The estimate as a sentence."""
        if not self.turns:
            return f"{self.agent}: {self.episodes} episodes, no cost: it runs on this machine"
        price = "" if self.dollars is None else f", about ${self.dollars:.2f}"
        return (
            f"{self.agent}: {self.episodes} episodes, about {self.turns:,} turns, "
            f"{self.input_tokens:,} tokens in and {self.output_tokens:,} out{price}"
        )


def estimate_run(plan: Plan, agents: tuple[str, ...], options: dict[str, Any]) -> list[Estimate]:
    """Estimates a run from the oracle's steps in every scene; nothing is sent."""
    free = {agent: is_free(agent) for agent in agents}
    count = len(plan.cells)
    paid = _size(plan) if not all(free.values()) else (0, 0, 0)
    dollars = _price(paid[1], paid[2], options)
    return [
        Estimate(agent, count, 0, 0, 0, 0.0)
        if free[agent]
        else Estimate(agent, count, *paid, dollars)
        for agent in agents
    ]


def _size(plan: Plan) -> tuple[int, int, int]:
    """Turns, input tokens and output tokens of a usual agent."""
    turns = read = written = 0
    for cell in plan.cells:
        scene = build(cell)
        tools = len(JSON.encode([*map(as_openai, scene.tools), *PROTOCOL_TOOLS]))
        so_far = 0
        for message in messages(scene, scene.rehearsal):
            size = len(JSON.encode(message))
            if message["role"] == "assistant":
                turns, read, written = turns + 1, read + tools + so_far, written + size
            so_far += size
    tokens_in, tokens_out = (int(DETOURS * n / BYTES_PER_TOKEN) for n in (read, written))
    return int(DETOURS * turns), tokens_in, tokens_out


def _price(tokens_in: int, tokens_out: int, options: dict[str, Any]) -> float | None:
    price_in, price_out = options.get("price_in"), options.get("price_out")
    if price_in is None or price_out is None:
        return None
    share = PRICE if options.get("batch") else 1.0
    return share * estimate(1, tokens_in, tokens_out, price_in, price_out)
