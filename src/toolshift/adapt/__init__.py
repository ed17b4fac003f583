"""Noticing that the tools moved, and telling the agent: `toolshift.adapt(agent, lock=...)`.

layer.py          `adapt`: a layer around any agent, which tells it of drift and undoes it if asked
notes.py          what has changed, as facts and guesses for an agent
failures.py       what stands beside an error: what a good interface would have said
lessons.py        a small memory: which note was followed by success, what failed and what worked
words.py          the words of texts in any script (UAX 29), and how many two texts share
moves.py          where a call of a locked tool may go today
same_words.py     whether two names are the same words, on which alone a call may be moved
repair.py         calls by names of the lock, as they have to be made today
conversation.py   a conversation as the agent is shown it, and what the layer did in it
evidence.py       what a refusal or a claim of success rests on
errors_said.py    whether a result is an error, and its words
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _Package(ModuleType):
    """Makes this package callable: `toolshift.adapt` is both the package and the function.

    Python sets a package as an attribute of the one above it as soon as a module in it is imported.
    """

    def __call__(self, *given: Any, **named: Any) -> Any:
        """Calls `layer.adapt`."""
        return import_module(f"{self.__name__}.layer").adapt(*given, **named)


sys.modules[__name__].__class__ = _Package
