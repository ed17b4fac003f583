"""A live scene: foreign tools as the truth of a scene, so that every registered shift serves them.

    scene = live_scene(from_mcp(listed), seed=0, pool="dev")
    scene = shifted(scene, stack)                      # the same shifts as anywhere
    live = Live(scene, toolbox.tools, carry)           # carry(name, arguments) -> Result, for real
    live.tools()                                       # as shown now
    live.call(name, arguments)                         # -> Spoken

A live scene has no task and no user. Its rehearsal, from which shifts pick their targets, calls
every tool once (of more than `MAX_REHEARSED`, a seeded choice; or those the user says that his
agent needs) on made-up results, never on the real ones. So severity 1 hits one tool, 2 those of the
rehearsal, 3 all. A shift that needs a task, a user or declared data flow raises `NotApplicable`.

`Live` stands between the layers and the real tools and lets a spoken call reach only those writing
tools that it stands for, each once. A layer that does more gets an error in place of the write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

import jsonschema_rs
import msgspec

from toolshift.core import seed as seeds
from toolshift.core.codecs import replaced
from toolshift.core.errors import ShiftFault, UsageError
from toolshift.core.layer import Layer, Session
from toolshift.core.names import unknown
from toolshift.core.render import facts, show
from toolshift.core.scene import Applied, Outcome, Scene, Task
from toolshift.core.shift import NotApplicable, Shift
from toolshift.core.step import Step
from toolshift.core.tool import Result, Tool, error, first_fault
from toolshift.core.world import Truth, World
from toolshift.interop.schema import checkable, sample
from toolshift.interop.tools import Toolbox
from toolshift.shifts.registry import apply, find_shift
from toolshift.shifts.watching import Changes, Watched, noting

MAX_REHEARSED = 12
MAX_HINTS = 6
Carry = Callable[[str, dict[str, Any]], Result]
SPARING = ("tool_subset", "tool_gone_lookalike")
"""Shifts that take away what the task can spare."""
TASKLESS = ("merged_tools", "conflicting_sources", "verification_change", "fatal_error_lookalike")
"""Shifts that need a task, or data flow between tools: those of others declare none."""
TRAPS = ("semantic_trap",)
"""Shifts that tempt an agent into calling another tool than it means to."""


class LiveWorld(World):
    """The world of tools that are not ours: no entities, no tasks, no facts that a user knows."""

    name = "live"
    names_from = ("description", "synonyms")
    system = ""
    facts = {}
    tools = ()
    actions = {}
    kinds = {}


@dataclass(frozen=True)
class _NoEntities:
    seed: int


@dataclass(frozen=True, eq=False)
class LiveScene(Scene):
    """A scene over foreign tools.

    Attributes:
        needed: the true tools that the agent needs, if known.
        made_by: for each layer, the shift that it belongs to.
        toolbox: of the tools, which says how they are shown; None where nobody is to be shown them.
    """

    needed: tuple[str, ...] = ()
    made_by: tuple[str, ...] = ()
    toolbox: Toolbox | None = None


def _rehearse(scene: Scene) -> tuple[Step, ...]:
    """A call of every tool (see the module), on made-up results."""
    assert isinstance(scene, LiveScene)
    rehearsal = Rehearsal(scene.open())
    rehearsal.visit(_rehearsed(scene, rehearsal.shown()))
    return rehearsal.steps


def live_scene(
    toolbox: Toolbox, seed: int = 0, pool: str = "dev", needed: tuple[str, ...] = ()
) -> LiveScene:
    """The scene of a toolbox before any shift; deterministic in the seed and the tool list."""
    for name in needed:
        if name not in toolbox.sources:
            raise UsageError(unknown("tool", name, toolbox.sources))
    answers = {name: _answering(source.example()) for name, source in toolbox.sources.items()}
    truth = Truth(toolbox.tools, answers, _NoEntities(seed))
    identity = f"{seeds.derive(seed, toolbox.hash):016x}"[:12]
    lineage = f"live/{toolbox.hash}/{pool}/{seed}"
    task = Task("live", "tools", pool, seed, len(toolbox.tools), 0, lineage, identity)
    return LiveScene(
        task, LiveWorld(), truth, (), Outcome(), "", _rehearse, needed=needed, toolbox=toolbox
    )


def _answering(example: Any) -> Callable[[Any, dict[str, Any]], Any]:
    return lambda state, arguments: example


# -- shifts ------------------------------------------------------------------------------------


def shifted(scene: LiveScene, stack: tuple[Applied, ...], may_write: bool = False) -> LiveScene:
    """Applies shifts to a live scene, the deepest first."""
    for one in sorted(stack, key=lambda one: (find_shift(one.shift).order, one.shift)):
        before = scene
        scene = _applied(scene, one)
        if find_shift(one.shift).base in TRAPS and not may_write:
            _refuse_writes(before, scene, one)
    return scene


def never(found: Shift, needed: tuple[str, ...]) -> str:
    """Why a shift applies to no live tools, whatever they are; "" where it may apply."""
    if found.dimension == "query":
        return "it changes what a user says, and live tools have no user"
    if found.level == 3:
        return "it changes the task or the truth, and live tools have theirs"
    if found.base in SPARING and not needed:
        return "which tools can be spared is not known; say which are needed"
    return ""


def _applied(scene: LiveScene, one: Applied) -> LiveScene:
    found = find_shift(one.shift)
    name = f"{one.shift}:{one.severity}"
    if why := never(found, scene.needed):
        raise NotApplicable(f"{name}: {why}")
    try:
        after = apply(scene, one.shift, one.severity)
        _check_conditions(scene, after)
    except NotApplicable as reason:
        raise NotApplicable(f"{name}: {reason}") from None
    except ShiftFault as fault:  # a rule that looks for the user's request, or for a task's calls
        if isinstance(fault.__cause__, IndexError):
            raise NotApplicable(f"{name}: it needs a task and a user's request") from None
        raise
    if not isinstance(after, LiveScene) or after.truth is not scene.truth or after.asks:
        raise NotApplicable(f"{name}: it changes the task or the truth, and live tools have theirs")
    made_by = (*scene.made_by, *[name] * (len(after.layers) - len(scene.layers)))
    return replace(after, made_by=made_by)


def _check_conditions(scene: LiveScene, after: Scene) -> None:
    """Checks that what a document asks of arguments can be said of them as they are given now."""
    for tool in after.tools if scene.toolbox else ():
        if scene.toolbox and any(param.shapes for param in tool.params):
            scene.toolbox.schema(tool)


def _refuse_writes(before: LiveScene, after: LiveScene, one: Applied) -> None:
    was = {tool.origin: tool.name for tool in before.tools}
    lured = [
        "".join(tool.origin)
        for tool in after.tools
        if tool.effect == "write" and was.get(tool.origin) != tool.name
    ]
    if lured:
        raise UsageError(
            f"{one.shift}:{one.severity} would give misleading names to tools that are not marked "
            f"readOnlyHint ({', '.join(lured)}), and these tools are real. Use another --seed or "
            "--needs, or insist with --allow-traps-that-write"
        )


class Rehearsal:
    """Calls tools of a session, follows what the answers ask, and notes the steps.

    Args:
        session: the interface to call; that of a live scene answers with made-up results.
        given: values of parameters, by fact; others are made up from their schemas.
    """

    def __init__(self, session: Session, given: Mapping[str, Any] | None = None) -> None:
        self.session = session
        self.steps: tuple[Step, ...] = ()
        self._given = dict(given or {})
        self._known = dict(self._given)
        self._open: set[str] = set()

    def shown(self) -> dict[str, Tool]:
        """The tools on offer now, by name."""
        return {tool.name: tool for tool in self.session.tools() if not tool.retired}

    def visit(self, tools: Iterable[Tool]) -> None:
        """Calls each of some tools once, after those that yield what it needs."""
        self._open.clear()
        self._known = dict(self._given)
        for tool in tools:
            if tool.name not in self._open:
                self._visit(tool)

    def _visit(self, tool: Tool) -> None:
        self._open.add(tool.name)
        for fact in tool.needs:
            feeding = (t for t in self.shown().values() if fact and t.yields(fact))
            source = next((t for t in feeding if t.name not in self._open), None)
            if fact not in self._known and source is not None:
                self._visit(source)
        self._call(tool)

    def _call(self, tool: Tool) -> None:
        more: dict[str, Any] = {}
        for _ in range(MAX_HINTS):
            result = self._step(tool, {**self._arguments(tool), **more})
            hint = result.hint
            if hint is None or hint.kind == "fatal":
                return
            if hint.kind == "use":
                tool, more = self.shown().get(hint.tool, tool), dict(hint.arguments)
            elif hint.kind == "page":
                more = dict(hint.arguments)
            elif hint.kind == "value":
                more = replaced(self._arguments(tool), {hint.old: hint.new})

    def _arguments(self, tool: Tool) -> dict[str, Any]:
        return {
            param.name: self._known[param.fact]
            if param.fact in self._known
            else sample(param.schema, param.name)
            for param in tool.params
            if param.required or param.fact in self._given
        }

    def _step(self, tool: Tool, arguments: dict[str, Any]) -> Result:
        result = self.session.call(tool.name, dict(arguments))
        for record in result.records if result.ok else ():
            self._known |= facts(record, result.fields)
        code = "" if result.ok else result.data["error"]["code"]
        step = Step("call", len(self.steps), tool.name, arguments, show(result), ok=result.ok)
        self.steps = (*self.steps, _noted(step, code, result))
        return result


def _noted(step: Step, code: str, result: Result) -> Step:
    hint = result.hint.kind if result.hint else ""
    return msgspec.structs.replace(step, error=code, provoked=result.provoked, hint=hint)


def _rehearsed(scene: LiveScene, shown: Mapping[str, Tool]) -> list[Tool]:
    """The tools to call: those that stand for the needed ones, else all, or a seeded choice."""
    able = [tool for tool in shown.values() if tool.origin]
    if scene.needed:
        return [tool for tool in able if set(tool.origin) & set(scene.needed)]
    origins = list(dict.fromkeys(tool.origin for tool in able))
    if len(origins) > MAX_REHEARSED:
        rng = seeds.rng(scene.task.id, "rehearsal")
        origins = rng.sample(sorted(origins), MAX_REHEARSED)
    return [tool for tool in able if tool.origin in origins]


# -- before the real tools -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Spoken:
    """What came of a spoken call.

    Attributes:
        result: as the outermost layer gave it.
        true: the true calls behind it: name, arguments, success.
        changed: the tools on offer have changed with it.
        by: the shifts that changed the call or its result.
    """

    result: Result
    true: tuple[tuple[str, dict[str, Any], bool], ...]
    changed: bool
    by: tuple[str, ...] = ()


_may_write: ContextVar[set[str] | None] = ContextVar("_may_write", default=None)


class LiveUpstream:
    """Real tools below a stack of layers; never carries out a write that was not asked for."""

    def __init__(self, tools: tuple[Tool, ...], carry: Carry) -> None:
        self.effects: list[tuple[Any, ...]] = []
        self._tools, self._carry = tools, carry
        self._by_name = {tool.name: tool for tool in tools}

    def tools(self) -> tuple[Tool, ...]:
        """The tools as they truly are."""
        return self._tools

    def replace(self, tools: tuple[Tool, ...]) -> None:
        """Takes note that the real tools have changed."""
        self._tools = tools
        self._by_name = {tool.name: tool for tool in tools}

    def call(self, name: str, arguments: dict[str, Any]) -> Result:
        """Carries out a true call, if this spoken call may make it."""
        tool = self._by_name.get(name)
        if tool is None:
            return error("unknown_tool", f"There is no tool named {name}.")
        if tool.effect == "write":
            left = _may_write.get()
            if left is None or name not in left:
                text = f"{name} is not marked as read-only, and one call may call it only once."
                return error("write_refused", text)
            left.remove(name)
        return self._carry(name, arguments)


class Live:
    """A shifted interface to real tools. Not safe to call from two threads at once.

    Args:
        scene: the shifted scene; only its layers count.
        toolbox: the real tools.
        carry: makes a real call; what it raises passes through.
        by_calls: calls bring about what comes in mid-session; else `session.deploy` does.

    Attributes:
        changes: what each shift has changed so far.
    """

    def __init__(
        self, scene: LiveScene, toolbox: Toolbox, carry: Carry, by_calls: bool = True
    ) -> None:
        self.scene, self.toolbox = scene, toolbox
        self.upstream = LiveUpstream(toolbox.tools, carry)
        self.changes = {f"{one.shift}:{one.severity}": Changes() for one in scene.shifts}
        names = (*scene.made_by, *["a layer"] * (len(scene.layers) - len(scene.made_by)))
        watched = [
            Watched(layer, name, self.changes.setdefault(name, Changes()))
            for layer, name in zip(scene.layers, names, strict=True)
        ]
        self.session = Session(self.upstream, tuple(watched), by_calls=by_calls)

    @property
    def moves(self) -> bool:
        """Whether the tools may change in mid-session."""
        return any(type(layer).phase is not Layer.phase for layer in self.scene.layers)

    def tools(self) -> tuple[Tool, ...]:
        """The tools as shown now."""
        return tuple(tool for tool in self.session.tools() if not tool.retired)

    def documents(self) -> list[dict[str, Any]]:
        """The tools as shown now, in the words of their dialect.

        What declares a tool's results is left out where a layer may change them. A client checks
        each result against it, so this must not rest on a trial with made-up results.
        """
        changed = self.session.changed_results()
        return [
            self.toolbox.speak(tool, bool(tool.origin) and changed.isdisjoint(tool.origin))
            for tool in self.tools()
        ]

    def passes_unread(self, name: str) -> bool:
        """Whether arguments of a shown tool may pass as they were written, though nobody can read.

        Those of a tool with other parameters than the true one would pass under names, or in
        values, that only the reader of the shown tool knows.
        """
        tool = next((tool for tool in self.session.tools() if tool.name == name), None)
        if tool is None:
            return True  # there is no such tool, whatever the arguments
        source = self.toolbox.source(tool)
        return source is not None and tool.params == source.tool.params

    def call(self, name: str, arguments: dict[str, Any]) -> Spoken:
        """Carries a spoken call through the layers."""
        offered = self.session.tools()
        tool = next((tool for tool in offered if tool.name == name), None)
        wrong = self._wrong(tool, name, arguments)
        if wrong is not None:
            return Spoken(wrong, (), False)
        token = _may_write.set(set(tool.origin) if tool is not None else set())
        try:
            with noting() as by:
                result = self.session.call(name, arguments)
        finally:
            _may_write.reset(token)
            true = tuple([(n, a, made.ok) for n, a, made in self.session.true_calls])
            self.session.true_calls.clear()  # those of this call, also where it failed
        return Spoken(result, true, self.session.tools() is not offered, tuple(sorted(by)))

    def _wrong(self, tool: Tool | None, name: str, arguments: dict[str, Any]) -> Result | None:
        """What an agent's call has got wrong; what is unchanged is judged by the tool itself."""
        if tool is None:
            return error("unknown_tool", f"There is no tool named {name}.")
        checked = self.toolbox.checked(tool)
        if checked is None:
            return None
        try:
            check = jsonschema_rs.validator_for(checkable(checked))
        except (ValueError, jsonschema_rs.ReferencingError):
            return None
        fault = first_fault(check, arguments)
        return error("invalid_arguments", f"{name}: {fault}") if fault else None
