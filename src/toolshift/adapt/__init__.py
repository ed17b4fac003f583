"""Noticing that the tools moved, and telling the agent: `toolshift.adapt(agent, lock=...)`.

changes.py   typed changes between two tool lists, each with how much it breaks
schemas.py   the changes between the schemas of one parameter
calls.py     calls that were valid and are no longer; calls to try where none was recorded
lock.py      the lock: tools and schemas as an agent knew them, with a hash of each
other_locks.py  the locks of other tools
successors.py  which of today's tools stands for a locked one, so that what was learned is kept
same_words.py  whether two names are the same words, on which alone a call may be moved
moves.py     where a call of a locked tool may go today
notes.py     what has changed, as facts for an agent
repair.py    calls by names of the lock, as they have to be made today
results.py   results as the lock declares them
effects.py   what tools say of their effect, and where two of them contradict each other
conversation.py  a conversation as the agent is shown it, and what the layer did in it
paging.py    lists that come in pages
evidence.py  what a refusal or a claim of success rests on
lessons.py   a small memory across conversations: what failed, and what then worked
errors_said.py  what a failed result says: try again, never again, or use another tool
layer.py     `adapt`: a layer around any agent that tells it of drift, and undoes it where asked
sources.py   where tools and calls come from: servers, documents, traces, run folders
events.py    drift as events, with the calls that break and the texts that instruct
instructions.py  signs that a text of a tool instructs the model
sarif.py     drift as SARIF
cost.py      drift as shifts, and what it costs an agent
stream.py    calls, tools and endings, from the lines of a stream
sequential.py  has a rate gone up? with a stated rate of false alarms
mix.py       has the mix of what users ask moved?
watch.py     what drifts in a stream
webhook.py   alarms to a webhook
metrics.py   what is watched, for Prometheus
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _Package(ModuleType):
    """This package, which can be called: `toolshift.adapt` names it and the function alike.

    Python sets a package as an attribute of the one above it as soon as a module in it is imported.
    """

    def __call__(self, *given: Any, **named: Any) -> Any:
        """Calls `layer.adapt`."""
        return import_module(f"{self.__name__}.layer").adapt(*given, **named)


sys.modules[__name__].__class__ = _Package
