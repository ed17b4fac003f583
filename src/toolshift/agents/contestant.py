"""An agent that takes part in a run, with how it was named."""

from __future__ import annotations

from dataclasses import dataclass

from toolshift.agents.answer_cache import OwnReplies
from toolshift.episode.contract import Agent, OutsideAgent, ScriptedAgent
from toolshift.reading.prose import ProseReader


@dataclass(frozen=True)
class Contestant:
    """An agent in a study, and the spec it was made from ("" for an object of the caller's).

    Attributes:
        judge: reads its prose; None for the shipped reading.
        max_repeats: its episode ends where the same call has had the same result this often; 0 for
            no such limit.
        stored: the agent behind its stored replies, where the user has asked for them.
    """

    agent: Agent | ScriptedAgent | OutsideAgent
    spec: str = ""
    concurrency: int = 1
    judge: ProseReader | None = None
    max_repeats: int = 0
    stored: OwnReplies | None = None

    @property
    def name(self) -> str:
        """How results call it."""
        return self.agent.name
