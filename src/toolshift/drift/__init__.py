"""The changes between two tool lists, what they break, and the lock that stores a list.

changes.py             typed changes between two tool lists, each with how much it breaks
schemas.py             the changes between the schemas of one parameter
effects.py             what tools say of their effect, and where two of them contradict each other
instructions.py        signs that a text of a tool instructs the model
calls.py               calls that were valid and are no longer; calls to try where none was recorded
lock.py                the lock: tools and schemas as an agent knew them, with a hash of each
other_locks.py         the locks of other tools
sources.py             where tools and calls come from: servers, documents, traces, run folders
stream.py              calls, tools and endings, from the lines of a stream
events.py              drift as events, with the calls that break and the texts that instruct
sarif.py               drift as SARIF
cost.py                drift as shifts, and what it costs an agent
"""
