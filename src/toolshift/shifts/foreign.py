"""Tools of other domains: made by rule from services, objects and verbs, or read from a file.

A foreign tool has no part in any task. It yields no fact, and a call of it is answered truthfully:
its service has no such record, or may not be changed. So it is never the right answer, whatever an
agent passes to it, and the oracle's proof of a scene holds among any number of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from random import Random
from typing import Any, NamedTuple

from toolshift.core import seed as seeds
from toolshift.core.scene import Scene
from toolshift.core.tables import table_beside
from toolshift.core.tool import Effect, Param, Result, Tool, error
from toolshift.interop.tools import Toolbox

TABLES: dict[str, Any] = table_beside(__file__, "foreign.toml")

NO_RECORD, CLOSED = "no_record", "read_only_access"
"""Codes of what foreign tools answer. Neither is one that a refusal can rest on (`not_found`)."""
_FILTERS = ("state", "updated_after", "labels", "parent_ref")
_VALUES = ("notes", "due", "labels", "notify", "parent_ref", "metadata")
_CLOSED = "This account holds no records there. Nothing was read or changed."


class Foreign(NamedTuple):
    """A foreign tool, the block of the list that it stands in, and what it answers."""

    tool: Tool
    block: str
    answer: Result


@dataclass(frozen=True)
class Kind:
    """What can be done with the objects of a service."""

    verb: str
    shape: str
    text: str
    effect: Effect


def words_of_tools(tools: Iterable[Tool]) -> frozenset[str]:
    """The words, in the plural, that names of some tools and of their parameters consist of."""
    names = (name for tool in tools for name in (tool.name, *(p.name for p in tool.params)))
    return frozenset(word for name in names for word in _words(name))


def by_rule(pool: str, seed: int, count: int, apart: frozenset[str]) -> tuple[Foreign, ...]:
    """So many tools of made-up services, in the order in which a host lists them.

    Where the services run out, they come again, each for a region. A service that deals with one of
    the words of the scene's own tools (`apart`) is left out, so that no foreign tool may be taken
    for a right one.
    """
    return _by_rule(pool, seed, count, _clashing(pool, apart))


@lru_cache(maxsize=64)
def _by_rule(pool: str, seed: int, count: int, clashing: frozenset[str]) -> tuple[Foreign, ...]:
    table = TABLES[pool]
    services = [one for one in table["services"] if one[0] not in clashing]
    seeds.rng("foreign services", pool, seed).shuffle(services)
    return tuple(islice(_endless(table, services, seed), count))


@lru_cache(maxsize=256)
def _clashing(pool: str, apart: frozenset[str]) -> frozenset[str]:
    """The services that deal with what the scene's own tools deal with."""
    return frozenset(
        name
        for name, _, objects in TABLES[pool]["services"]
        if any(word in apart for text in (name, *objects) for word in _words(text))
    )


def _endless(table: Any, services: Sequence[Any], seed: int) -> Iterator[Foreign]:
    """The tools of every service, and then those of the services of one region after another."""
    kinds = [Kind(verb, shape, text, "read") for verb, shape, text in table["reads"]]
    kinds += [Kind(verb, shape, text, "write") for verb, shape, text in table["writes"]]
    round_ = 0
    while services:
        turn, place = divmod(round_ - 1, len(table["regions"]))
        region = "" if not round_ else table["regions"][place] + (str(turn + 1) if turn else "")
        for name, about, objects in services:
            for thing in objects:
                for kind in kinds:
                    yield _made(table, (name, about, region), thing, kind, seed)
        round_ += 1


def _made(table: Any, service: tuple[str, str, str], thing: str, kind: Kind, seed: int) -> Foreign:
    name, about, region = service
    many = kind.shape in ("many", "search")
    block = f"{name}_{region}" if region else name
    called = f"{name} ({region})" if region else name
    shown = called[0].upper() + called[1:]
    things = plural(thing)
    said = kind.text.format(O=thing, Os=things, S=shown)
    rng = seeds.rng("foreign parameters", name, thing, kind.verb, seed)
    tool = Tool(
        _written(table["name"], (*block.split("_"), kind.verb, things if many else thing)),
        f"{said}. {shown} is about {about}.",
        tuple(_params(thing, kind.shape, rng)),
        (),
        many=many,
        effect=kind.effect,
    )
    if kind.effect == "write":
        return Foreign(tool, block, error(CLOSED, table["closed"].format(S=shown)))
    nothing = table["none"].format(S=shown, O=thing)
    if many:
        return Foreign(tool, block, Result(True, {things: [], "total": 0, "message": nothing}))
    return Foreign(tool, block, error(NO_RECORD, nothing))


def _params(thing: str, shape: str, rng: Random) -> Iterator[Param]:
    """What a tool takes: what its kind always takes, and some of what such tools commonly do."""
    if shape in ("one", "update", "assign"):
        text = f"Id of the {thing}."
        yield Param(f"{thing}_ref", "", {"type": "string", "description": text})
    if shape == "search":
        text = f"Words that the {plural(thing)} contain."
        yield Param("text", "", {"type": "string", "minLength": 1, "description": text})
    if shape == "assign":
        person = {
            "type": "object",
            "properties": {"login": {"type": "string"}, "team": {"type": "string"}},
            "required": ["login"],
            "description": "Who takes it.",
        }
        yield Param("assignee", "", person)
    if shape == "create":
        yield _common("title", required=True)
    if shape in ("many", "search"):
        for name in (*sorted(rng.sample(_FILTERS, rng.randint(1, 3))), "sort", "limit", "cursor"):
            yield _common(name)
    if shape in ("create", "update"):
        for name in sorted(rng.sample(_VALUES, rng.randint(2, 4))):
            yield _common(name)


def _common(name: str, required: bool = False) -> Param:
    return Param(name, "", TABLES["params"][name], required)


def _written(style: str, parts: Sequence[str]) -> str:
    if style == "snake":
        return "_".join(parts)
    if style == "kebab":
        return "-".join(parts)
    return parts[0] + "".join(part.capitalize() for part in parts[1:])


def plural(thing: str) -> str:
    """A noun in its plural; one that has it already as it is."""
    if thing.endswith("s"):
        return thing
    if thing.endswith(("ch", "sh", "x")):
        return f"{thing}es"
    if thing.endswith("y") and thing[-2] not in "aeiou":
        return f"{thing[:-1]}ies"
    return f"{thing}s"


def _words(name: str) -> Iterator[str]:
    """The words of a name in the plural, whatever its style."""
    return (plural(part.lower()) for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name))


def from_list(toolbox: Toolbox) -> tuple[Foreign, ...]:
    """The tools of a list of the user's, as one block; each answers that the account is empty."""
    return tuple(
        Foreign(tool.with_(returns=(), origin=()), "", error(NO_RECORD, _CLOSED))
        for tool in toolbox.tools
    )


def apart_from(scene: Scene) -> frozenset[str]:
    """The words of a scene's own tools, those included that are not shown yet."""
    return words_of_tools((*scene.open().tools(), *scene.clean.truth.tools))
