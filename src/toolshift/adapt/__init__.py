"""Noticing that the tools moved: what a world looked like, and what has changed.

changes.py   typed changes between two tool lists, each with how much it breaks
schemas.py   the changes between the schemas of one parameter
calls.py     calls that were valid and are no longer; calls to try where none was recorded
lock.py      the lock: tools and schemas as an agent knew them, with a hash of each
"""
