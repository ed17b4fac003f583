"""How much an agent may do in one episode."""

from __future__ import annotations

import msgspec

from toolshift.core.scene import Scene


class Budget(msgspec.Struct, frozen=True):
    """How much an agent may do in one episode.

    Attributes:
        calls: of tools.
        turns: replies of the agent.
    """

    calls: int = 24
    turns: int = 30

    @classmethod
    def of(cls, scene: Scene) -> Budget:
        """The budget of a scene: twice what the oracle needs, and some more to explore.

        Args:
            scene: in which the oracle is let work.

        Returns:
            At least 12 calls and 16 turns.
        """
        calls, turns = len(scene.calls), len(scene.rehearsal)
        return cls(max(12, 2 * calls + 6), max(16, 2 * turns + 8))
