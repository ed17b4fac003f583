"""The interface: layers between an agent and the truth, and the live stack of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from inspect import get_annotations
from typing import Any, Protocol, TypeGuard, runtime_checkable

from toolshift.core.errors import ShiftFault, defined_at, described, kind_of, place_of, placed
from toolshift.core.tool import Hint, Result, Tool

Below = Callable[[str, dict[str, Any]], Result]
Memory = dict[str, Any]


class Upstream(Protocol):
    """What a stack of layers stands on: a world's truth, a recording, or a live server.

    `effects` lists the writes made so far, in terms of entities; it stays empty where they cannot
    be known.
    """

    effects: list[tuple[Any, ...]]

    def tools(self) -> tuple[Tool, ...]:
        """The tools as they truly are."""
        ...

    def call(self, name: str, arguments: dict[str, Any]) -> Result:
        """Carries out a true call."""
        ...


@runtime_checkable
class Closing(Protocol):
    """An upstream that is told when the episode is over."""

    def close(self) -> None:
        """Ends it; effects that show only in the end state are added to `effects`."""
        ...


@runtime_checkable
class Following(Protocol):
    """An upstream that is told when each request of the user is done with."""

    def request_over(self, attempts: int) -> None:
        """Judges the request, where that is done turn by turn; may add to `effects`."""
        ...


@cache  # `isinstance` with a protocol takes longer than a call of a tool
def _meets(kind: Any, protocol: Any) -> bool:
    return issubclass(kind, protocol)


def closes(upstream: Any) -> TypeGuard[Closing]:
    """Whether an upstream is to be told when the episode is over."""
    return _meets(upstream.__class__, Closing)


def follows(upstream: Any) -> TypeGuard[Following]:
    """Whether an upstream is to be told when a request is done with."""
    return _meets(upstream.__class__, Following)


class Layer:
    """One change of the interface, in both directions.

    A layer is frozen; what it must remember within an episode is in `memory`, a dict of its own.
    `memory["calls"]` is the number of true calls that have succeeded so far, `memory["asks"]` the
    number of the user's request, from 0, `memory["below"]` the tools that the layer below shows.
    In an episode `memory["turn"]` is the number of the agent's turn, for calls of one turn are made
    without knowing what the others bring. Where a deployment changes the tools, and not calls,
    `memory["calls"]` is 0 before and `DEPLOYED` after it.

    Attributes:
        slots: parts of the interface that this layer takes for itself; a scene refuses a second
            layer of the same slot, since one of the two would change nothing.
        defers: it keeps tools back until an agent searches for them.
    """

    slots: frozenset[str] = frozenset()
    defers: bool = False

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        for name in ("tools", "phase", "call", "changes_results"):
            if name in get_annotations(cls) or not callable(getattr(cls, name)):
                raise TypeError(
                    f"{cls.__name__}.{name} is a method of every layer: give the field another name"
                )
        if "call" in vars(cls) and "changes_results" not in vars(cls):
            # What a layer says of its results holds for its own `call`, not for another one.
            cls.changes_results = Layer.changes_results  # type: ignore[method-assign]

    @property
    def title(self) -> str:
        """How messages call it."""
        return type(self).__name__

    def tools(self, tools: tuple[Tool, ...], memory: Memory) -> tuple[Tool, ...]:
        """What is shown now, made from what is shown below.

        Args:
            tools: as the layer below shows them.
            memory: what this layer keeps in one episode.

        Returns:
            The tools as this layer shows them.
        """
        return tools

    def phase(self, memory: Memory) -> int:
        """Which of its tool lists the layer shows now; `tools` runs again only when it changes.

        A number stands for the same list in every episode of a scene, which keeps them.

        Args:
            memory: what this layer keeps in one episode.

        Returns:
            A number, 0 at the start.
        """
        return 0

    def call(self, name: str, arguments: dict[str, Any], memory: Memory, below: Below) -> Result:
        """Carries a spoken call inward, and its result outward.

        `below` is the rest of the stack; a layer may call it once, several times, or not at all.

        Args:
            name: of the tool, as this layer shows it.
            arguments: as spoken, valid for that tool.
            memory: what this layer keeps in one episode.
            below: carries a call on, in the terms of the layer below.

        Returns:
            What is shown for the call.
        """
        return below(name, arguments)

    def changes_results(self, tool: Tool) -> bool:
        """Whether a successful result of a tool may hold other data than the layer below gave.

        What declares the results of a tool (`outputSchema`) is then not shown beside it. A layer
        with a `call` of its own that leaves such results as they are says so here.

        Args:
            tool: as this layer shows it.

        Returns:
            True for every tool where the layer has a `call` of its own.
        """
        return type(self).call is not Layer.call


DEPLOYED = 1_000_000
"""The number of calls that a deployment counts as; no layer waits for more."""


class LayerFault(ShiftFault):
    """The code of a layer raised: its shift is broken."""

    def __init__(self, layer: Layer, fault: Exception, method: str = "call") -> None:
        message = f"{layer.title}.{method} raised {described(fault)}"
        if isinstance(fault, WrongReturn):
            message = f"{layer.title}.{method} {fault}"
        place = place_of(fault) or defined_at(getattr(type(layer), method, layer))
        super().__init__(placed(message, place))


class WrongReturn(TypeError):
    """What a method of a layer has returned is of the wrong type; the message says what."""


TrueCall = tuple[str, dict[str, Any], Result]
"""A call as it has reached the upstream, and what it brought."""
ToolLists = dict[tuple[int, ...], tuple[tuple[Tool, ...], tuple[Tool, ...]]]
"""The tools below a layer and those it shows, by the phases of it and of all layers under it.

Episodes of one scene share them, so that a list is made once, and its tools compiled once."""


class Session:
    """A stack of layers over an upstream, alive for one episode.

    Args:
        upstream: what the layers stand on.
        layers: the lowest first.
        lists: what the layers have shown in other episodes of the same scene.
        by_calls: calls bring about what comes in mid-session; else `deploy` does.
    """

    def __init__(
        self,
        upstream: Upstream,
        layers: tuple[Layer, ...],
        lists: ToolLists | None = None,
        by_calls: bool = True,
    ) -> None:
        self.upstream = upstream
        self.layers = layers
        self.memories: list[Memory] = [{"calls": 0, "asks": 0} for _ in layers]
        self.true_calls: list[TrueCall] = []
        self._lists: ToolLists = {} if lists is None else lists
        # No method of this object, so that an episode that is over is freed without a collection.
        self._entry = _noting(upstream, self.true_calls, self.memories if by_calls else [])
        for layer, memory in zip(layers, self.memories, strict=True):
            self._entry = _through(layer, memory, self._entry)
        self._changing = [type(layer).phase is not Layer.phase for layer in layers]
        self._looked: tuple[tuple[Tool, ...], tuple[int, ...], tuple[Tool, ...]] | None = None

    def tools(self) -> tuple[Tool, ...]:
        """The tools as they stand now, the retired ones included."""
        below = self.upstream.tools()
        stack = zip(self.layers, self.memories, self._changing, strict=True)
        phases = tuple([_phase(layer, mem) if own else 0 for layer, mem, own in stack])
        if self._looked is None or self._looked[0] is not below or self._looked[1] != phases:
            self._looked = below, phases, self._shown(below, phases)
        return self._looked[2]

    def _shown(self, shown: tuple[Tool, ...], phases: tuple[int, ...]) -> tuple[Tool, ...]:
        for place, layer in enumerate(self.layers):
            reached = phases[: place + 1]
            self.memories[place]["below"] = shown
            kept = self._lists.get(reached)
            if kept is None or kept[0] is not shown:
                made = _shown(layer, shown, self.memories[place])
                kept = self._lists[reached] = (shown, made)
            shown = kept[1]
        return shown

    def changed_results(self) -> frozenset[str]:
        """The true tools whose successful results a layer may change, as the tools stand now."""
        shown = self.upstream.tools()
        names: set[str] = set()
        for layer, memory in zip(self.layers, self.memories, strict=True):
            shown = _shown(layer, shown, memory)
            hit = [tool for tool in shown if layer.changes_results(tool)]
            names.update(name for tool in hit for name in tool.origin)
        return frozenset(names)

    def call(self, name: str, arguments: dict[str, Any]) -> Result:
        """Carries a spoken call through the whole stack."""
        return self._entry(name, arguments)

    def deploy(self) -> None:
        """Triggers every mid-session change now, as if very many calls had succeeded."""
        for memory in self.memories:
            memory["calls"] = DEPLOYED


def _noting(upstream: Upstream, made: list[TrueCall], memories: list[Memory]) -> Below:
    """The calls of an upstream, each noted, and counted in some memories where it succeeds."""

    def call(name: str, arguments: dict[str, Any]) -> Result:
        result = upstream.call(name, arguments)
        made.append((name, arguments, result))
        if result.ok:
            for memory in memories:
                memory["calls"] += 1
        return result

    return call


def _through(layer: Layer, memory: Memory, below: Below) -> Below:
    """Calls a layer over the rest of the stack; tells its own faults from those below it."""
    passing: BaseException | None = None
    foreign = False  # whether a failure came from below in words of its own, as other servers fail

    def under(name: str, arguments: dict[str, Any]) -> Result:
        nonlocal passing, foreign
        try:
            result = below(name, arguments)
        except BaseException as fault:  # of the tools or of a deeper layer, not of this one
            passing = fault
            raise
        foreign = foreign or (not result.ok and bool(_wrong_in(result)))
        return result

    def call(name: str, arguments: dict[str, Any]) -> Result:
        nonlocal foreign
        foreign = False
        try:
            result: object = layer.call(name, arguments, memory, under)
        except Exception as fault:
            if fault is passing:
                raise
            raise LayerFault(layer, fault) from fault
        if not isinstance(result, Result):
            raise LayerFault(layer, WrongReturn(_wanted(result, "a toolshift.Result")))
        if not foreign and (wrong := _wrong_in(result)):
            raise LayerFault(layer, WrongReturn(wrong))
        return result

    return call


def _wrong_in(result: Result) -> str:
    """What nothing above a layer could read in its result; "" for nothing."""
    if result.hint is not None and not isinstance(result.hint, Hint):
        return f"returned a Result whose hint is {type(result.hint).__name__}, not a toolshift.Hint"
    if result.ok:
        return ""
    said = result.data.get("error") if isinstance(result.data, dict) else None
    texts = [said.get(key) for key in ("code", "message")] if isinstance(said, dict) else [None]
    if all(isinstance(text, str) for text in texts):
        return ""
    return (
        f"returned a failed Result with the data {result.data!r:.100}; wanted: "
        '{"error": {"code": "busy", "message": "Try again."}}'
    )


def _wanted(returned: object, what: str) -> str:
    if returned is None:
        return f"returned nothing: end it with a `return` of {what}"
    return f"returned {kind_of(returned)}, not {what}"


def _phase(layer: Layer, memory: Memory) -> int:
    try:
        phase: object = layer.phase(memory)
    except Exception as fault:
        raise LayerFault(layer, fault, "phase") from fault
    if isinstance(phase, int):
        return phase
    raise LayerFault(layer, WrongReturn(_wanted(phase, "a whole number")), "phase")


def _shown(layer: Layer, tools: tuple[Tool, ...], memory: Memory) -> tuple[Tool, ...]:
    try:
        returned: object = layer.tools(tools, memory)
        shown = tuple(returned) if isinstance(returned, list | tuple) else ()
    except Exception as fault:
        raise LayerFault(layer, fault, "tools") from fault
    wrong = next((entry for entry in shown if not isinstance(entry, Tool)), None)
    if wrong is None and isinstance(returned, list | tuple):
        return shown
    what = "a tuple of toolshift.Tool"
    if wrong is not None:
        message = f"returned {kind_of(wrong)} among the tools, not {what}"
    else:
        message = _wanted(returned, what)
    raise LayerFault(layer, WrongReturn(message), "tools")
