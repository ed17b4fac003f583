"""The errors that a user can mend: each says what was wrong, where, and what to do."""

from __future__ import annotations


class UsageError(Exception):
    """Something that was asked for or configured cannot work; the message says what to change."""


class BudgetSpent(UsageError):
    """The money allowed for a run, or left on the account, is spent.

    A study that meets it keeps the episodes that are finished and can be resumed.
    """
