"""How much an agent may do in one episode."""

from __future__ import annotations

import msgspec

from toolshift.core.scene import Scene


class Budget(msgspec.Struct, frozen=True):
    """How much an agent may do in one episode.

    Attributes:
        calls: of tools.
        turns: replies of the agent.
        repeats: how often the same call may have the same result; 0 for no such limit. An agent
            that decodes greedily says the same again to the same, so most of such loops never end.
    """

    calls: int = 24
    turns: int = 30
    repeats: int = 0

    @classmethod
    def of(cls, scene: Scene, repeats: int = 0) -> Budget:
        """The budget of a scene: twice what the oracle needs, and some more to explore.

        Args:
            scene: in which the oracle is let work.
            repeats: how often the same call may have the same result; 0 for no such limit.

        Returns:
            At least 12 calls and 16 turns.
        """
        calls, turns = len(scene.calls), len(scene.rehearsal)
        return cls(max(12, 2 * calls + 6), max(16, 2 * turns + 8), repeats)
