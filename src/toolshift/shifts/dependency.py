"""How tools depend on each other: merged, split, reversed, guarded.

Each of these rewires the graph: it takes tools away and adds others that are made of them, so the
same rewiring serves a world, a recording with declared data flow and a live server. Everything is
documented in the tools that are shown, in the wording of the pool (`dependency.toml`); what the
solver makes of that is the proof.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from random import Random
from typing import Any

from toolshift.core.names import short
from toolshift.core.scene import Scene
from toolshift.core.shift import Change, NotApplicable, Severity, shift
from toolshift.core.tables import table_beside
from toolshift.core.tool import Field, Param, Tool
from toolshift.episode.grading_rules import effects_of
from toolshift.shifts.rewiring import (
    Guarded,
    Handle,
    Join,
    Part,
    Recall,
    Remember,
    Rewired,
    bare,
    joined_params,
    joined_returns,
    label,
)
from toolshift.shifts.wording import form_of

Step = Callable[[Scene], Rewired | None]
Words = dict[str, Any]
"""One wording of a rewiring: names and texts, with the names of tools in braces."""
HANDLE, PERMIT = " handle", " permit"
"""What the facts end in that a split and a guard make."""

TABLES: dict[str, dict[str, list[Words]]] = table_beside(__file__, "dependency.toml")
words = partial(form_of, TABLES)


def repeated(scene: Scene, times: int, first: Step, more: Step, what: str) -> Change:
    """Rewires once where the task is hit, then further until the severity is reached."""
    layers: tuple[Rewired, ...] = ()
    current = scene
    for number in range(times):
        layer = (more if number else first)(current)
        if layer is None:
            raise NotApplicable(f"no {'further ' if number else ''}{what}")
        layers = (*layers, layer)
        current = current.with_(layers=(*current.layers, layer))
    return Change(layer=layers)


def holds(scene: Scene, layer: Rewired, must_call: tuple[str, ...] = ()) -> bool:
    """Whether the oracle still comes to the same end behind a layer, by way of some tools."""
    changed = scene.with_(layers=(*scene.layers, layer))
    called = {step.name for step in changed.calls}
    ends = [(s.rehearsal[-1].kind, s.rehearsal[-1].said) for s in (scene, changed)]
    writes = [effects_of(s.rehearsal) for s in (scene, changed)]
    return ends[0] == ends[1] and writes[0] == writes[1] and called.issuperset(must_call)


def used(scene: Scene) -> list[Tool]:
    """The tools that the oracle calls, in the order of their first call."""
    by_name = {tool.name: tool for tool in scene.tools}
    names = dict.fromkeys(step.name for step in scene.calls)
    return [by_name[name] for name in names if name in by_name]


def links(tools: list[Tool]) -> Iterator[tuple[Tool, Tool, str]]:
    """Pairs of tools of which the first yields what the second needs, with that fact."""
    for place, source in enumerate(tools):
        for target in tools[:place] + tools[place + 1 :]:
            for fact in target.needs:
                if source.yields(fact) and fact not in source.needs:
                    yield source, target, fact


# -- merged ------------------------------------------------------------------------------------


def merge(
    source: Tool, target: Tool, fact: str, forms: Words, name: Callable[[str, str], str]
) -> Rewired:
    """One tool in the place of two: the second's results beside the first's."""
    names = {"a": source.name, "b": target.name}
    first, second = bare(source), bare(target)
    second = f"{second[0].lower()}{second[1:]}"
    effect = "write" if "write" in (source.effect, target.effect) else "read"
    tool = Tool(
        name(source.name, target.name),
        forms["text"].format(**names, first=first, second=second),
        joined_params(source, target, fact),
        joined_returns(source, target),
        many=source.many or target.many,
        effect=effect,  # type: ignore[arg-type]
        origin=source.origin + target.origin,
        channels=source.channels & target.channels,
    )
    gone = frozenset((source.name, target.name))
    return Rewired(gone, ((tool, Join(source, target, fact)),))


def _mergeable(source: Tool, target: Tool) -> bool:
    return not (source.many and (target.many or target.effect == "write"))


@shift(
    tier="reasoning",
    dimension="action",
    level=2,
    order=1,
    version=2,
    one_level=True,
    imitates="Search now returns details inline; GET /details is removed.",
)
def merged_tools(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Merge tools that were called one after the other into one."""
    forms = words("merged", scene, rng)
    return merged(scene, rng, 1, forms, lambda a, b: short(forms["name"].format(a=a, b=b)))


def merged(
    scene: Scene, rng: Random, times: int, forms: Words, name: Callable[[str, str], str]
) -> Change:
    """The change that merges tools so often, first two that the task needs."""

    def step(pick: Callable[[Scene], list[Tool]]) -> Step:
        def find(current: Scene) -> Rewired | None:
            pairs = [p for p in links(pick(current)) if _mergeable(p[0], p[1])]
            rng.shuffle(pairs)
            layers = (merge(*pair, forms, name) for pair in pairs)
            return next((layer for layer in layers if holds(current, layer)), None)

        return find

    return repeated(scene, times, step(used), step(lambda s: list(s.tools)), "pair to merge")


# -- split -------------------------------------------------------------------------------------


def split_by_handle(tool: Tool, forms: Words) -> Rewired:
    """Two tools in the place of one: the first gives a handle, the second takes it."""
    fact = f"{tool.name}{HANDLE}"
    parts = ("first", "second", "key")
    names = {part: short(forms[part].format(tool=tool.name)) for part in parts}
    texts = {**names, "text": bare(tool)}
    key = names["key"]
    first = tool.with_(
        name=names["first"],
        description=forms["before"].format(**texts),
        returns=(Field((key,), fact),),
        many=False,
        effect="read",
    )
    schema = {"type": "string", "description": forms["says"].format(**texts)}
    second = tool.with_(
        name=names["second"],
        description=forms["after"].format(**texts),
        params=(Param(key, fact, schema),),
    )
    return Rewired(
        frozenset((tool.name,)), ((first, Handle(tool, key)), (second, Recall(tool, key)))
    )


def split_by_part(tool: Tool, forms: Words, numbered: bool = True) -> Rewired:
    """Two tools in the place of one: each returns a part of what it returned.

    What no field declares comes with the second. Parts are `numbered` as `Part` has it.
    """
    half = (len(tool.returns) + 1) // 2
    parts = (tool.returns[:half], tool.returns[half:])
    before = frozenset(f.path[0] for f in parts[0]) - {f.path[0] for f in parts[1]}
    added = []
    for name, fields, others in zip(
        (forms["first"], forms["second"]), parts, (None, before), strict=True
    ):
        kept = ", ".join(field.path[-1] for field in fields)
        part = tool.with_(
            name=short(name.format(tool=tool.name)),
            description=forms["text"].format(text=bare(tool), fields=kept),
            returns=fields,
        )
        added.append((part, Part(tool, fields, others, numbered)))
    return Rewired(frozenset((tool.name,)), tuple(added))


def deals_in(tool: Tool, what: str) -> bool:
    """Whether a tool takes or returns a fact of a rewiring, whose names end alike."""
    facts = (*(param.fact for param in tool.params), *(field.fact for field in tool.returns))
    return any(fact.endswith(what) for fact in facts)


@shift(
    tier="reasoning",
    dimension="action",
    level=2,
    order=1,
    imitates="Searches are asynchronous now: POST /search returns a handle, GET its results.",
)
def split_tools(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Split a tool into two that must be called together."""
    by_handle, by_part = words("handle", scene, rng), words("part", scene, rng)

    def find(current: Scene) -> Rewired | None:
        tools = [t for t in used(current) if not deals_in(t, HANDLE)]
        rng.shuffle(tools)
        for tool in tools:
            whole = severity > 1 or tool.many or tool.effect == "write" or len(tool.returns) < 2
            layer = (
                split_by_handle(tool, by_handle)
                if whole
                else split_by_part(tool, by_part, not current.world.counts)
            )
            if holds(current, layer):
                return layer
        return None

    return repeated(scene, severity, find, find, "tool to split")


# -- reversed ----------------------------------------------------------------------------------


def reverse(source: Tool, target: Tool, fact: str, key: Field, forms: Words) -> Rewired:
    """The order of two tools turned round: the second comes first and feeds the first."""
    names = {
        "first": target.name,
        "second": source.name,
        "given": ", ".join(param.name for param in source.params),
        "fed": label(fact),
        "key": key.path[-1],
    }
    now_first = target.with_(
        params=joined_params(source, target, fact),
        description=bare(_base(target)) + forms["before"].format(**names),
        origin=target.origin,
    )
    schema = {"type": "string", "description": forms["says"].format(**names)}
    now_second = source.with_(
        params=(Param(key.path[-1], key.fact, schema),),
        description=bare(_base(source)) + forms["after"].format(**names),
    )
    return Rewired(
        frozenset((source.name, target.name)),
        (
            (now_first, Remember(source, target, fact, key)),
            (now_second, Recall(source, key.path[-1])),
        ),
    )


def _base(tool: Tool) -> Tool:
    """A tool without the note of an earlier reversal, which this one replaces."""
    for forms in TABLES["reversed"].values():
        for note in (form[place] for form in forms for place in ("before", "after")):
            tool = tool.with_(description=tool.description.partition(note.partition("{")[0])[0])
    return tool


def keys(tool: Tool, tools: list[Tool]) -> list[Field]:
    """What of a result can stand for it: what another tool needs, else a reference or code."""
    needed = [f for f in tool.returns if any(f.fact in t.needs for t in tools if t is not tool)]
    return needed or [f for f in tool.returns if f.fact.endswith(("_ref", "_code"))]


@shift(
    tier="reasoning",
    dimension="action",
    level=3,
    version=2,
    one_level=True,
    imitates="v3: a case is opened first; lookups take its number.",
)
def reversed_order(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Reverse the order of two tools: the first now consumes what the second returns."""
    return reversals(scene, rng, 1)


def reversals(scene: Scene, rng: Random, times: int) -> Change:
    """The change that reverses the order of two tools so often, first of two that are needed."""
    forms = words("reversed", scene, rng)

    def candidates(tools: list[Tool]) -> list[tuple[Tool, Tool, str, Field]]:
        return [
            (source, target, fact, key)
            for source, target, fact in links(tools)
            if not (source.many or target.many or "write" in (source.effect, target.effect))
            for key in keys(target, tools)
        ]

    def find(current: Scene, in_task: bool) -> Rewired | None:
        pairs = candidates(used(current) if in_task else list(current.tools))
        rng.shuffle(pairs)
        for source, target, fact, key in pairs:
            layer = reverse(source, target, fact, key, forms)
            if holds(current, layer, (source.name, target.name) if in_task else ()):
                return layer
        return None

    return repeated(
        scene, times, lambda s: find(s, True), lambda s: find(s, False), "pair to reverse"
    )


# -- a new precondition ------------------------------------------------------------------------


def guard(tool: Tool, salt: str, forms: Words) -> Rewired:
    """A tool that takes a permit, and the new tool that grants it."""
    fact, key = f"{tool.name}{PERMIT}", forms["key"]
    names = {"tool": tool.name, "grant": short(forms["grant"].format(tool=tool.name))}
    schema = {"type": "string", "description": forms["says"].format(**names)}
    guarded = tool.with_(
        params=(*tool.params, Param(key, fact, schema)),
        description=bare(tool) + forms["note"].format(**names),
    )
    subject = next(
        (p for p in tool.params if p.required and p.schema.get("type") == "string"), None
    )
    granting = Tool(
        names["grant"],
        forms["grants"].format(**names),
        (subject,) if subject else (),
        (Field((key,), fact), Field(("audit_ref",), f"{tool.name} audit")),
        origin=(),
    )
    permit = Guarded(tool, key, subject.name if subject else "", salt, forms["error"])
    return Rewired(frozenset((tool.name,)), ((guarded, permit), (granting, permit.granting())))


@shift(
    tier="reasoning",
    dimension="action",
    level=2,
    order=1,
    imitates="Breaking: writes need a consent token from POST /consents.",
)
def new_precondition(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Make a tool need a permit that another, new tool grants."""
    forms = words("guard", scene, rng)

    def find(current: Scene) -> Rewired | None:
        tools = [t for t in used(current) if not deals_in(t, PERMIT)]
        rng.shuffle(tools)
        layers = (guard(tool, scene.task.id, forms) for tool in tools)
        return next((layer for layer in layers if holds(current, layer)), None)

    return repeated(scene, severity, find, find, "tool to guard")
