"""Noticing that the tools moved, and telling the agent: `toolshift.adapt(agent, lock=...)`.

layer.py          `adapt`: a layer around any agent, which tells it of drift and undoes it if asked
notes.py          what has changed, as facts for an agent
moves.py          where a call of a locked tool may go today
same_words.py     whether two names are the same words, on which alone a call may be moved
conversation.py   a conversation as the agent is shown it, and what the layer did in it
repair.py         calls by names of the lock, as they have to be made today
results.py        results as the lock declares them
paging.py         lists that come in pages
evidence.py       what a refusal or a claim of success rests on
lessons.py        a small memory across conversations: what failed, and what then worked
errors_said.py    what a failed result says: try again, never again, or use another tool
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
