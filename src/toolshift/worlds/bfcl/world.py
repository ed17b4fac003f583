"""A world whose tasks are the entries of BFCL."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from functools import cache
from hashlib import blake2b
from typing import Any

from toolshift.core.ask import Ask
from toolshift.core.errors import UsageError
from toolshift.core.fact import Fact
from toolshift.core.layer import Layer
from toolshift.core.scene import Declared, Outcome, Scene, Task
from toolshift.core.solver import Solve
from toolshift.core.tool import JSON, Tool
from toolshift.core.world import TaskKind, Truth, World
from toolshift.episode.oracle import rehearse
from toolshift.interop.tools import from_mcp
from toolshift.worlds.bfcl import wheel
from toolshift.worlds.bfcl.multi_turn import (
    EXPECTED,
    NEVER,
    REFUSAL,
    Backends,
    BackendTruth,
    Blocked,
    HeldBack,
    Spoken,
    as_result,
    read_call,
)
from toolshift.worlds.bfcl.schemas import (
    READS,
    as_schema,
    as_source_text,
    is_valid,
    listed,
    shown_name,
    widened,
)
from toolshift.worlds.bfcl.single_turn import (
    CallsTruth,
    category_of,
    expected_calls,
    language_of,
    verdict,
)
from toolshift.worlds.own.file import SYSTEM, Call, Check, Given
from toolshift.worlds.own.reference_solution import ScriptedSolution, trace
from toolshift.worlds.own.world import NoEntities, as_fact, never, not_truthful

MULTI_TURN = (
    "multi_turn_base", "multi_turn_miss_func", "multi_turn_miss_param", "multi_turn_long_context",
)  # fmt: skip
NON_LIVE = (
    "simple_python", "simple_java", "simple_javascript", "multiple", "parallel",
    "parallel_multiple", "irrelevance",
)  # fmt: skip
LIVE = (
    "live_simple", "live_multiple", "live_parallel", "live_parallel_multiple", "live_irrelevance",
)  # fmt: skip
COLLECTIONS: dict[str, tuple[str, ...]] = {
    **{category: (category,) for category in (*MULTI_TURN, *NON_LIVE, *LIVE)},
    "multi_turn": MULTI_TURN,
    "non_live": NON_LIVE,
    "live": LIVE,
    "single_turn": (*NON_LIVE, *LIVE),
}
"""Every world `bfcl:NAME` and its categories, which are its task kinds; the names are BFCL's."""


@dataclass(frozen=True, eq=False)
class Entry:
    """An entry that a task is made of.

    Attributes:
        raw: as the data set has it.
        answers: its ground truth; None where no call is right.
    """

    raw: Mapping[str, Any]
    answers: Any = None


@dataclass(frozen=True, eq=False)
class Prepared:
    """An entry as a task.

    Attributes:
        given: what is said, and the calls of the ground truth.
        truth: its functions, ready to be opened.
        outcome: what passes.
        asks: the user's turns.
        facts: what the user can be asked about.
        layers: what is not on offer from the start.
        speaks_in_records: as of `BfclScene`.
    """

    given: Given
    truth: Truth
    outcome: Outcome
    asks: tuple[Ask, ...]
    facts: Mapping[str, Fact]
    system: str = SYSTEM
    layers: tuple[Layer, ...] = ()
    speaks_in_records: bool = False


@dataclass(frozen=True, eq=False)
class BfclScene(Scene):
    """An entry as a scene.

    Attributes:
        expected: the calls of the ground truth.
        speaks_in_records: whether one of them returns more than a text.
    """

    expected: tuple[Call, ...] = ()
    speaks_in_records: bool = False

    def not_applicable_reason(self, shift: Declared) -> str:
        """What draws tasks or entities cannot be truthful here."""
        if shift.base in ("format_drift", "csv_results") and not self.speaks_in_records:
            return "no result of the task holds data that could be written otherwise"
        return not_truthful(self, shift, self.expected)


class BfclWorld(World):
    """Some categories of BFCL, each a task kind.

    Args:
        name: of the world.
        categories: that it has.

    Attributes:
        entries: those that tasks are made of, by category.
        left_out: the id of every other entry, and why no task can be made of it.
    """

    traceable = False
    names_from = ("synonyms", "description")
    actions: Mapping[str, Any] = {}
    system = SYSTEM
    facts: Mapping[str, Fact] = {}

    def __init__(self, name: str, categories: tuple[str, ...]) -> None:
        self.name = name
        self.left_out: dict[str, str] = {}
        self.entries = {category: self._read(category) for category in categories}
        self.counts = {category: len(entries) for category, entries in self.entries.items()}
        self.kinds = {category: TaskKind(category, (), never) for category in categories}
        used = {b for entries in self.entries.values() for e in entries for b in _backends(e.raw)}
        self.tools = tuple(
            tool for backend in sorted(used) for tool in _functions(backend).values()
        )

    def _read(self, category: str) -> list[Entry]:
        answers = wheel.answers(category)
        entries = []
        for raw in wheel.entries(category):
            entry = Entry(raw, answers.get(raw["id"]))
            why = _unfit(entry)
            if why:
                self.left_out[raw["id"]] = why
            else:
                entries.append(entry)
        return entries

    def scene(self, kind: str, index: int, seed: int, pool: str, size: int) -> Scene:
        """The clean scene of an entry; seed and pool only choose what shifts draw."""
        entries = self.entries[kind]
        if index >= len(entries):
            raise UsageError(f"world {self.name} has {len(entries)} tasks of kind {kind}")
        entry = entries[index]
        task = _prepared(entry)
        own = copy(self)
        own.facts = task.facts
        lineage = f"{self.name}/{kind}/{pool}/{seed}/{size}/{index}"
        shown = [[tool.name, tool.description, tool.params] for tool in task.truth.tools]
        content = [lineage, entry.raw["id"], wheel.version(), entry.answers, shown]
        identity = blake2b(JSON.encode(content), digest_size=6).hexdigest()
        named = Task(self.name, kind, pool, seed, size, index, lineage, identity)
        truth = replace(task.truth, db=NoEntities(seed))
        return BfclScene(
            named,
            own,
            truth,
            task.asks,
            task.outcome,
            task.system,
            rehearse,
            task.layers,
            expected=task.given.calls,
            speaks_in_records=task.speaks_in_records,
        )


def _backends(raw: Mapping[str, Any]) -> list[str]:
    return list(raw.get("involved_classes", ()))


def _unfit(entry: Entry) -> str:
    """Why no task can be made of an entry; "" where one can."""
    raw, answers = entry.raw, entry.answers
    if "involved_classes" in raw:
        return _used_too_early(raw, answers)
    roles = [message["role"] for message in raw["question"][0]]
    if roles not in (["user"], ["system", "user"]):
        return "it begins in the middle of a conversation"
    if not raw["function"]:
        return "it offers no function, so that nobody could fail"
    if answers is None:
        return ""
    made = expected_calls(raw, answers)
    if any(value is None for _, arguments in made for value in arguments.values()):
        return "its ground truth passes null, which is to say nothing here"
    wrong = verdict(raw, made, answers)
    return f"its ground truth fails by BFCL's own checker ({wrong})" if wrong else ""


def _used_too_early(raw: Mapping[str, Any], answers: Any) -> str:
    held = _held_back(raw)
    for turn, calls in enumerate(answers):
        for call in map(read_call, calls):
            if turn < held.get(call.name, 0):
                return f"its ground truth calls {call.name} in a turn in which it is not offered"
    return ""


def _held_back(raw: Mapping[str, Any]) -> dict[str, int]:
    """The turn from which on each function is offered that is not from the start."""
    never_there = dict.fromkeys(raw.get("excluded_function", ()), NEVER)
    later = raw.get("missed_function", {})
    return never_there | {name: int(turn) for turn, names in later.items() for name in names}


def _prepared(entry: Entry) -> Prepared:
    if "involved_classes" in entry.raw:
        return _multi_turn(entry)
    return _single_turn(entry)


# -- several turns over stateful backends --------------------------------------------------------


@cache
def _functions(backend: str) -> dict[str, Tool]:
    """The functions of a backend, by name."""
    documents = wheel.documents(backend).values()
    stateless = wheel.part("bfcl_eval.constants.executable_backend_config").STATELESS_CLASSES
    raw = [
        listed(
            document,
            as_schema(document["parameters"]),
            _reads(backend, document["name"], stateless),
        )
        for document in documents
    ]
    tools = from_mcp(raw).tools
    # A result that holds a list beside nothing else is still a record here.
    return {tool.name: tool.with_(many=False, returns=()) if tool.many else tool for tool in tools}


def _reads(backend: str, name: str, stateless: Iterable[str]) -> bool:
    reads = READS.search(name) is not None and not name.startswith("add_")
    return backend in stateless or reads


def _multi_turn(entry: Entry) -> Prepared:
    raw = entry.raw
    wanted = tuple(tuple(map(read_call, turn)) for turn in entry.answers)
    functions = {
        name: tool for backend in _backends(raw) for name, tool in _functions(backend).items()
    }
    names = {name: [param.name for param in tool.params] for name, tool in functions.items()}
    calls = tuple(
        Call(call.name, call.by_name(names[call.name]), turn)
        for turn, spoken in enumerate(wanted)
        for call in spoken
    )
    tools = tuple(_allowing(functions[name], calls) for name in functions)
    truth = BackendTruth(tools, {}, NoEntities(), raw, wanted)
    later = wheel.part("bfcl_eval.constants.default_prompts")
    texts = [
        turn[0]["content"] if turn else later.DEFAULT_USER_PROMPT_FOR_ADDITIONAL_FUNCTION_FC
        for turn in raw["question"]
    ]
    given = _given(raw, texts, calls)
    outcome = Outcome(
        tuple((f"turn {n + 1}", EXPECTED) for n, turn in enumerate(wanted) if turn),
        calls_alone=True,
    )
    last = max((n for n, turn in enumerate(wanted) if turn), default=0)
    held = _held_back(raw)
    blocked = {
        n: Blocked(asks="miss_param" in raw["id"])
        for n, turn in enumerate(wanted)
        if not turn and n < last and ("miss_param" in raw["id"] or n + 1 in held.values())
    }
    return _task(
        given,
        truth,
        outcome,
        _results(raw, wanted),
        blocked,
        layers=(HeldBack(held),) if held else (),
    )


def _allowing(tool: Tool, calls: Iterable[Call]) -> Tool:
    """A tool whose schema allows what the ground truth passes; the same where it does."""
    own = [call.arguments for call in calls if call.name == tool.name]
    schema = {"properties": {param.name: param.schema for param in tool.params}}
    known = schema["properties"]
    if all(is_valid(known[key], value) for arguments in own for key, value in arguments.items()):
        return tool
    opened = widened(schema, own)["properties"]
    return tool.with_(params=tuple(replace(p, schema=opened[p.name]) for p in tool.params))


def _results(raw: Mapping[str, Any], wanted: Iterable[Iterable[Spoken]]) -> dict[int, Any]:
    """What each call of the ground truth returns, by its place."""
    backends, results = Backends(raw), {}
    for place, each in enumerate(call for turn in wanted for call in turn):
        text, made = backends.call(each.name, *each.positional, **each.named)
        results[place] = as_result(each.name, text, made)
    return results


# -- one turn ------------------------------------------------------------------------------------


def _single_turn(entry: Entry) -> Prepared:
    raw, answers = entry.raw, entry.answers
    made = [] if answers is None else expected_calls(raw, answers)
    calls = tuple(Call(name, arguments) for name, arguments in made)
    language = language_of(raw).value
    tools = from_mcp([_shown(function, language) for function in _distinct(raw["function"])]).tools
    tools = tuple(_allowing(tool, calls) for tool in tools)
    texts = [message["content"] for message in raw["question"][0]]
    given = _given(raw, texts[-1:], calls, "" if answers is not None else REFUSAL)
    outcome = Outcome((("calls", EXPECTED),), calls_alone=True)
    if answers is None:
        outcome = Outcome((), refusal=REFUSAL, witness=(), calls_alone=True)
    truth = CallsTruth(tools, {}, NoEntities(), raw, answers)
    return _task(given, truth, outcome, {}, {}, texts[0] if len(texts) > 1 else SYSTEM)


def _distinct(functions: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The functions, one of each name: some entries list one twice."""
    return list({shown_name(function["name"]): function for function in functions}.values())


def _shown(document: Mapping[str, Any], language: str) -> dict[str, Any]:
    schema = as_schema(document["parameters"])
    if language != "python":
        written = {"java": "Java", "javascript": "JavaScript"}[language]
        told = document["parameters"]["properties"]
        properties = {name: as_source_text(inner, written) for name, inner in told.items()}
        schema = {**schema, "properties": properties}
    return listed(document, schema)


# -- what both have in common --------------------------------------------------------------------


def _given(
    raw: Mapping[str, Any], texts: Iterable[str], calls: tuple[Call, ...], refuse: str = ""
) -> Given:
    check = Check(refuse=refuse)
    return Given(raw["id"], category_of(raw), tuple(texts), (), calls, check, (), ())


def _task(
    given: Given,
    truth: Truth,
    outcome: Outcome,
    results: Mapping[int, Any],
    blocked: Mapping[int, Solve],
    system: str = SYSTEM,
    layers: tuple[Layer, ...] = (),
) -> Prepared:
    """The task of an entry, its values traced to what is said and what comes back."""
    by_name = truth.by_name
    origins = trace(given, by_name, {place: result.data for place, result in results.items()})
    failing = frozenset(place for place, result in results.items() if not result.ok)
    asks = tuple(
        Ask(
            text,
            origins.goals[turn],
            blocked.get(turn)
            or ScriptedSolution(given, turn, by_name, origins.links, origins.slots, failing),
            None,
            scripted=True,
            blocked=turn in blocked,
        )
        for turn, text in enumerate(given.asks)
    )
    facts = {slot: as_fact(slot) for goal in origins.goals for slot in goal}
    records = any(result.ok and result.form != "text" for result in results.values())
    return Prepared(given, truth, outcome, asks, facts, system, layers, records)
