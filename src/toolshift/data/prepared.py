"""A list of tools under shifts, as any conversation with that list meets it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import msgspec

from toolshift.core import seed as seeds
from toolshift.core.errors import UsageError
from toolshift.core.layer import LayerFault
from toolshift.core.scene import Applied
from toolshift.core.shift import NotApplicable
from toolshift.core.tool import Tool
from toolshift.data.conversation import Conversation, ToolList, ToolShown
from toolshift.data.flow import NO_FLOW, Flow, with_flow
from toolshift.data.prose import Prose, Renamed
from toolshift.data.tool_mentions import NOTHING, Seen
from toolshift.data.tools import apart
from toolshift.interop.tools import Documented, Toolbox, from_openai
from toolshift.shifts.live import LiveScene, live_scene, shifted
from toolshift.shifts.release.release import Release, Released
from toolshift.shifts.release.required import Task
from toolshift.shifts.rewiring import Rewired
from toolshift.shifts.surface import Surface

POOL = "train"
"""Wordings come from the pool for training alone; those of evaluations never appear."""
Stack = tuple[Applied, ...]
NONE_CALLED = "no tool that is called can be changed this way"


@dataclass(frozen=True, eq=False)
class Prepared:
    """A list of tools under a stack of shifts; serves every conversation with that list.

    Attributes:
        kept: tools that no shift touches, at the end of the list.
    """

    toolbox: Toolbox
    scene: LiveScene
    kept: tuple[ToolShown, ...] = ()

    @cached_property
    def surfaces(self) -> tuple[Surface, ...]:
        """The layers that say things by other names, the lowest first."""
        return tuple(layer for layer in self.scene.layers if isinstance(layer, Surface))

    @cached_property
    def releases(self) -> tuple[Release, ...]:
        """The coming changes among the layers, the lowest first."""
        return tuple(layer.release for layer in self.scene.layers if isinstance(layer, Released))

    @cached_property
    def lost(self) -> frozenset[str]:
        """The true tools that a coming change has taken away."""
        return frozenset(name for release in self.releases[:1] for name in release.lost)

    @cached_property
    def speaking(self) -> tuple[Surface, ...]:
        """What texts call by other names, the lowest layer first."""
        layers = self.scene.layers
        found = (one.release.surface if isinstance(one, Released) else one for one in layers)
        return tuple(surface for surface in found if isinstance(surface, Surface))

    def for_task(self, task: Task) -> Prepared:
        """The same tools as one conversation meets them, by what is said and called in it."""
        if not self.releases:
            return self
        shown, layers = self.scene.truth.tools, []
        for layer in self.scene.layers:
            own = layer.release.layer(shown, task) if isinstance(layer, Released) else layer
            layers.append(own)
            shown = own.tools(shown, {})
        if tuple(layers) == self.scene.layers:
            return self
        return replace(self, scene=replace(self.scene, layers=tuple(layers)))

    @cached_property
    def gone(self) -> Surface:
        """Finds mentions of the tools that others have taken the place of."""
        rewired = [layer for layer in self.scene.layers if isinstance(layer, Rewired)]
        removed = {name for layer in rewired for name in layer.removed}
        kept = {tool.name for layer in rewired for tool, _ in layer.added}
        return Surface(names=dict.fromkeys(removed - kept, ""))

    @cached_property
    def plain(self) -> bool:
        """Whether nothing but names and texts moves, so that calls need not be played."""
        return len(self.surfaces) == len(self.scene.layers)

    @cached_property
    def shown(self) -> tuple[ToolShown, ...]:
        """The tools as they are shown at the start."""
        return ToolList(self.as_shown(tuple(t for t in self.scene.tools if not t.retired)))

    @cached_property
    def untouched(self) -> frozenset[str]:
        """The true tools that are shown as they came; none where further tools stand beside them.

        Those of a shift that adds tools are what it changes.
        """
        shown = {tool.function["name"]: tool.function for tool in self.shown}
        sources = self.toolbox.sources
        if len(shown) > len(sources) + len(self.kept):
            return frozenset()
        came = ((name, source.raw["function"]) for name, source in sources.items())
        return frozenset(name for name, function in came if shown.get(name) == function)

    def reaches(self, names: tuple[str, ...]) -> bool:
        """Whether a tool among those that a conversation calls is shown otherwise, if it has any.

        One that calls none of the tools that shifts may touch, such as one that only refuses, is
        shifted as any other: else names that have changed would tell that there is work to do.
        """
        return not names or not self.untouched.issuperset(names)

    @cached_property
    def schemas(self) -> dict[str, Any]:
        """The schema of the arguments of each shown tool, by name."""
        return {t.function["name"]: t.function.get("parameters") for t in self.shown}

    @cached_property
    def places(self) -> dict[str, int]:
        """The place of each true tool in the list."""
        return {name: place for place, name in enumerate(self.toolbox.sources)}

    def as_shown(self, tools: tuple[Tool, ...]) -> tuple[ToolShown, ...]:
        """Tools of the sandbox as a conversation has them."""
        return (*map(self._as_shown, tools), *self.kept)

    @cached_property
    def kept_names(self) -> frozenset[str]:
        """The names of the tools that no shift touches."""
        return frozenset(tool.function["name"] for tool in self.kept)

    def _as_shown(self, tool: Tool) -> ToolShown:
        keep_outputs = self._changed.isdisjoint(tool.origin)
        function = self.toolbox.speak(tool, keep_outputs)["function"]
        source = self.toolbox.source(tool)
        if source is None or isinstance(tool, Documented):  # a document of its own
            return ToolShown(function)
        known = source.known
        params = {p.name: known[p.fact] for p in tool.params if p.fact in known}
        return ToolShown(function, self.places.get(source.tool.name), params)

    @cached_property
    def _changed(self) -> frozenset[str]:
        """The true tools whose results the layers may change."""
        return self.scene.open().changed_results()

    def say(self, text: str, here: Seen.Here = NOTHING) -> str:
        """A text that speaks of the tools, by the names that are shown."""
        if not text or not self._may_speak(text):
            return text
        for prose in self.prose:
            text = prose.say(text, here)
        return text

    @cached_property
    def prose(self) -> tuple[Prose, ...]:
        """How texts speak above each surface, the lowest first."""
        sources = self.toolbox.sources.items()
        params = {name: [param.name for param in source.tool.params] for name, source in sources}
        found = []
        for surface in self.speaking:
            for tool in (*surface.names, *surface.params):
                params.setdefault(tool, [])  # one that a layer below has brought
            prose = Prose({name: _renamed(surface, name, own) for name, own in params.items()})
            params = {tool.name: [*tool.params.values()] for tool in prose.tools.values()}
            found.append(prose)
        return tuple(found)

    def _may_speak(self, text: str) -> bool:
        """Whether a text has a name in it at all, which most have not, and is cheap to see."""
        names, params = self._words
        for name in names:
            if name in text:
                return True
        marked = "=" in text or "'" in text or '"' in text or "`" in text
        return marked and any(name in text for name in params)

    @property
    def words(self) -> frozenset[str]:
        """Names that others are shown for; a text without any of them stays as it is."""
        names, params = self._words
        return frozenset((*names, *params))

    @cached_property
    def _words(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The names of tools, and of parameters, that have others above some surface."""
        names = {name for surface in self.speaking for name in surface.names}
        tables = [table for surface in self.speaking for table in surface.params.values()]
        return tuple(sorted(names)), tuple(sorted({name for table in tables for name in table}))


def _renamed(surface: Surface, name: str, params: list[str]) -> Renamed:
    """A tool, of these parameters, as a surface shows it."""
    table = surface.params.get(name, {})
    shown = {param: table.get(param, param) for param in (*params, *table)}
    return Renamed(surface.names.get(name, name), shown)


def prepared(
    tools: tuple[ToolShown, ...],
    stack: Stack,
    needed: tuple[str, ...],
    draw: int,
    flow: Flow = NO_FLOW,
) -> Prepared:
    """The tools under a stack; the same for the same arguments, and kept."""
    listed = ToolList.of(tools).encoded
    # What one recording says is of use to it alone, so it is not kept.
    found = (_kept if flow == NO_FLOW else _made)(listed, stack, needed, draw, flow)
    if isinstance(found, NotApplicable):
        raise found
    return found


def _made(
    listed: bytes, stack: Stack, needed: tuple[str, ...], draw: int, flow: Flow
) -> Prepared | NotApplicable:
    try:
        toolbox, kept = _read(listed)
        names = {tool.function["name"] for tool in kept}
        needed = tuple(name for name in needed if name not in names)
        toolbox = with_flow(toolbox, flow)
        scene = live_scene(toolbox, draw, POOL, needed)
        return Prepared(toolbox, shifted(scene, stack, may_write=True), kept)
    except NotApplicable as reason:
        return reason
    except UsageError as fault:  # two tools of one name, or a call of none that is on offer
        return NotApplicable(str(fault))
    except LayerFault as fault:
        return NotApplicable(f"the shift fails on these tools: {fault}")


_kept = lru_cache(maxsize=1024)(_made)


@lru_cache(maxsize=256)
def _read(listed: bytes) -> tuple[Toolbox, tuple[ToolShown, ...]]:
    """A list of tools, and those at its end that no shift touches; read once for all draws."""
    functions = msgspec.json.decode(listed)
    own, kept = apart(tuple(ToolShown(one, place) for place, one in enumerate(functions)))
    box = from_openai([{"type": "function", "function": one.function} for one in own])
    return box, kept


def called(conversation: Conversation) -> tuple[str, ...]:
    """The tools that a conversation calls, by name, sorted."""
    return tuple(sorted({call.name for said in conversation.messages for call in said.calls}))


def on_offer(names: Iterable[str], offered: Iterable[str]) -> tuple[str, ...]:
    """Those names that a list of tools has, sorted; an unlearned call may be of another."""
    return tuple(sorted(frozenset(offered).intersection(names)))


def needed_by(stack: Stack, names: tuple[str, ...], key: str) -> Iterator[tuple[str, ...]]:
    """The tools to take for needed, of those that a row calls; one choice after another.

    `key` draws the first of them. Severity 1 needs one that is called, 2 all of them. Severity 3
    is of all tools that are shown, so that rows with the same list share what it makes of it,
    whatever they call.
    """
    severities = {applied.severity for applied in stack}
    if not names or severities == {3}:
        yield ()
    elif 2 in severities:
        yield names
    else:
        first = seeds.derive_once("needed", key) % len(names)
        yield from ((name,) for name in names[first:] + names[:first])
