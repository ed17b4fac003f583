"""Domains of tau2-bench as worlds, read from the user's own installation.

world = find_tau2("tau2:retail")   # a World like any other
"""

from __future__ import annotations

from functools import cache

from toolshift.core.errors import UsageError
from toolshift.core.names import unknown
from toolshift.worlds.names import TAU2
from toolshift.worlds.tau2.world import DOMAINS, TauWorld

__all__ = ["TauWorld", "find_tau2"]


def find_tau2(name: str) -> TauWorld:
    """The world of a domain."""
    domain = name.removeprefix(TAU2)
    if domain not in DOMAINS:
        raise UsageError(unknown("domain of tau2-bench", domain, DOMAINS))
    return _made(domain)


@cache
def _made(domain: str) -> TauWorld:
    return TauWorld(f"{TAU2}{domain}", DOMAINS[domain])
