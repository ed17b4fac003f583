"""Checks of the state at the end: each is given a function that calls tools of the server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Call = Callable[..., Any]
REPO = "/episode/repo"


def tilo_is_noted(call: Call) -> bool:
    """One entity Tilo Beck, with one observation."""
    found = call("open_nodes", names=["Tilo Beck"])["entities"]
    return [(one["entityType"], one["observations"]) for one in found] == [
        ("person", ["repairs bicycles"])
    ]


def ana_knows_jon(call: Call) -> bool:
    """One relation from Ana to Jon."""
    relations = call("read_graph")["relations"]
    return [one["relationType"] for one in relations if one["to"] == "Jon Weber"] == ["knows"]


def price_is_committed(call: Call) -> bool:
    """The latest commit has the message, and holds the new price."""
    last = call("git_log", repo_path=REPO, max_count=1)
    return "Raise the price of tea" in last and "+tea 3" in call(
        "git_show", repo_path=REPO, revision="main"
    )


def spring_is_winter(call: Call) -> bool:
    """There is a branch spring, and its latest commit is that of winter."""
    listed = call("git_branch", repo_path=REPO, branch_type="local")
    return "spring" in listed and call("git_show", repo_path=REPO, revision="spring") == call(
        "git_show", repo_path=REPO, revision="winter"
    )
