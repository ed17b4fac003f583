"""Tools, true and shown, and their results."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

import jsonschema_rs
import msgspec

from toolshift.core.names import unknown
from toolshift.core.value_shape import Shape

JSON = msgspec.json.Encoder()
Effect = Literal["read", "write"]
HintKind = Literal["retry", "use", "page", "value", "refresh", "fatal"]
NAME, DESCRIPTION = "name", "description"


@dataclass(frozen=True, slots=True)
class Param:
    """One argument: its JSON Schema, and the fact that it takes (its need).

    Attributes:
        name: as a call passes it.
        fact: that is passed.
        schema: JSON Schema of the value, with a `description`, which agents are shown.
        required: whether a call must have it.
        given: the value that the documentation says to pass; None where it says none.
        shapes: how the value of the fact is written, the first first.
        free: it takes any words, as a search does, so none of them needs to have been shown.
    """

    name: str
    fact: str
    schema: dict[str, Any]
    required: bool = True
    given: Any = None
    shapes: tuple[Shape, ...] = ()
    free: bool = False

    def write(self, value: Any) -> Any:
        """A value of the fact, as a call passes it.

        Args:
            value: the true one.

        Returns:
            The value in all shapes of this parameter, such as {"value": 7} for 7.
        """
        for shape in self.shapes:
            value = shape.write(value)
        return value

    def read(self, written: Any) -> Any:
        """The value of the fact that a call passes.

        Args:
            written: as the call has it.

        Returns:
            The true value.
        """
        for shape in reversed(self.shapes):
            written = shape.read(written)
        return written


@dataclass(frozen=True, slots=True)
class Field:
    """One value of a result: where it stands, and the fact that it yields.

    Attributes:
        path: keys from the record to the value: ("price",), or ("data", "price") one level deeper.
        fact: that the value is.
        type: of the value: "number", "integer", or "string" for what is read as it stands: a text,
            a boolean, a list.
        scale: a shown number is the true one times this (a drift of units changes it).
        unit: eur, km, min, kg, mg or "": it ends the key of the value, as in `price_eur`.
        minutes: a shown time of day (HH:MM) is the true one plus so many minutes (a time zone).
    """

    path: tuple[str, ...]
    fact: str
    type: Literal["string", "number", "integer"] = "string"
    scale: float = 1.0
    unit: str = ""
    minutes: int = 0


@dataclass(frozen=True, eq=False, slots=True)
class Operation:
    """One of the things that a shown tool does, where an argument of it says which.

    Attributes:
        value: the argument that chooses it.
        tool: what it is by itself.
        chooser: the fact of the parameter that takes `value`.
        nest: the fact of the parameter that takes the arguments as one object; "" where they stand
            beside the choice.
        facts: for each parameter of `tool`, the fact of the shown one that takes it; no matter
            where they are nested.
    """

    value: str
    tool: Tool
    chooser: str
    nest: str = ""
    facts: tuple[tuple[str, str], ...] = ()


class Tool(msgspec.Struct, frozen=True, eq=False):
    """A tool with its dependencies as data: `params` are its needs, `returns` its yields.

    Attributes:
        name: at most 64 letters, digits, _ and -.
        description: what it does, as agents are shown it.
        params: what it takes.
        returns: where each fact stands in a record of its result.
        many: the result is a list of records, each with the fields of `returns`.
        effect: "read", or "write" where its action records an effect.
        origin: names of the true tools that a call stands for: in a world the tool's own, (name,);
            a layer that merges or replaces tools keeps it up to date, and tools of one origin that
            return the same are taken for one.
        channels: which shown texts still tell what the tool does ("name", "description").
        authority: of two tools that yield the same fact, the documentation prefers the higher.
        retired: no longer shown, though a call of it still gets the answer of its layer.
        operations: what it does, as far as that has been shown, where an argument chooses; None
            where it does one thing.
        operation: which of these it is, as `toolshift.core.operations` takes them apart.
        nest: in such a part, the parameter that takes arguments as one object, and their names.
        lists: a call of it shows what further operations there are.
    """

    name: str
    description: str
    params: tuple[Param, ...]
    returns: tuple[Field, ...]
    many: bool = False
    effect: Effect = "read"
    origin: tuple[str, ...] = ()
    channels: frozenset[str] = frozenset((NAME, DESCRIPTION))
    authority: int = 0
    retired: bool = False
    operations: tuple[Operation, ...] | None = None
    operation: str = ""
    nest: tuple[str, ...] = ()
    lists: bool = False

    @property
    def key(self) -> str:
        """Identifies the tool among all on offer: its name and its operation."""
        return f"{self.name} {self.operation}" if self.operation else self.name

    @property
    def needs(self) -> tuple[str, ...]:
        """The facts that a call needs."""
        return tuple(param.fact for param in self.params if param.required)

    def yields(self, fact: str) -> bool:
        """Whether a successful call brings this fact.

        Args:
            fact: its name.

        Returns:
            True where one of `returns` has it.
        """
        return any(field.fact == fact for field in self.returns)

    def with_(self, **changes: Any) -> Tool:
        """A copy with some attributes replaced.

        Args:
            changes: the new values, by the name of the attribute.

        Returns:
            Another tool; this one stays as it is.
        """
        return msgspec.structs.replace(self, **changes)


@lru_cache(maxsize=4096)
def input_schema(tool: Tool) -> dict[str, Any]:
    """The JSON Schema of a tool's arguments."""
    return {
        "type": "object",
        "properties": {param.name: param.schema for param in tool.params},
        "required": [param.name for param in tool.params if param.required],
        "additionalProperties": False,
    }


def as_openai(tool: Tool) -> dict[str, Any]:
    """The tool in the OpenAI function format; a fresh dict, which its reader may change."""
    shown: dict[str, Any] = msgspec.json.decode(_as_json(tool))
    return shown


@lru_cache(maxsize=4096)
def _as_json(tool: Tool) -> bytes:
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": input_schema(tool),
    }
    return JSON.encode({"type": "function", "function": function})


@lru_cache(maxsize=4096)
def validator(tool: Tool) -> Any:
    """The compiled validator of a tool's arguments."""
    return _compiled(JSON.encode(input_schema(tool)))


@lru_cache(maxsize=4096)
def _compiled(schema: bytes) -> Any:
    """A validator by the text of its schema, which many tools share: to compile it takes long."""
    return jsonschema_rs.validator_for(msgspec.json.decode(schema))


def invalid_arguments(tool: Tool, arguments: dict[str, Any]) -> str:
    """The first error in the arguments, in words; "" if there is none."""
    check = validator(tool)
    return "" if check.is_valid(arguments) else first_fault(check, arguments)


def first_fault(check: Any, value: object) -> str:
    """What a validator has against a value, with the place; "" where nothing."""
    try:
        fault = next(iter(check.iter_errors(value)), None)
    except ValueError as deep:  # nested beyond what it follows
        return f"it cannot be checked ({deep})"
    if fault is None:
        return ""
    where = ".".join(map(str, fault.instance_path))
    return f"{where}: {fault.message}" if where else str(fault.message)


@dataclass(frozen=True, slots=True)
class Hint:
    """What a result asks its reader to do next, said in the shown text as well.

    Scripted agents read the hint in place of the prose; `Solver` checks that its evidence
    (a tool's name, a value) stands in the text that was shown.

    Attributes:
        kind: "retry" the same call, "use" a `tool` with `arguments` added, ask for the next "page"
            with `arguments`, take a new "value" for the argument `old`, look again at the tools,
            which have changed ("refresh"), or give up ("fatal").
        tool: of "use": another tool, or the same one, of which more is asked.
        arguments: of "use" and "page": what is added to the call, by parameter name.
        old: of "value": the value that is no longer good.
        new: of "value": the value to use in its place.

    Raises:
        ValueError: for a kind that there is not, and for what its kind lacks or does not take.
    """

    kind: HintKind
    tool: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)
    old: Any = None
    new: Any = None

    def __post_init__(self) -> None:
        if self.kind not in _TAKES:
            raise ValueError(unknown("kind of hint", str(self.kind), _TAKES))
        blank: dict[str, Any] = {"tool": "", "arguments": {}, "old": None, "new": None}
        for name, none in blank.items():
            taken, there = name in _TAKES[self.kind], getattr(self, name) != none
            if there and not taken:
                others = " or ".join(repr(kind) for kind in _TAKES if name in _TAKES[kind])
                raise ValueError(f"a hint {self.kind!r} takes no `{name}`; {others} does")
            if taken and not there and (self.kind, name) != ("use", "arguments"):
                raise ValueError(f"a hint {self.kind!r} needs `{name}`")


_TAKES: dict[str, tuple[str, ...]] = {
    "retry": (),
    "use": ("tool", "arguments"),
    "page": ("arguments",),
    "value": ("old", "new"),
    "refresh": (),
    "fatal": (),
}
"""What a hint of each kind is made of."""


class Result(msgspec.Struct, frozen=True):
    """What a call brings back: true data on its way out through the layers.

    Attributes:
        ok: whether the call succeeded.
        data: a record, a list of records, or {"error": {"code", "message"}}.
        fields: how to read a record of `data`.
        form: how the data is written out; a key of `toolshift.core.render.FORMS`.
        notice: a line that a server adds beside the data, as a deprecation notice.
        provoked: an error made by a layer, not by the agent's call.
        inside: keys of `data` to its list of records; () where `data` is the records.
    """

    ok: bool
    data: Any
    fields: tuple[Field, ...] = ()
    form: str = "json"
    notice: str = ""
    hint: Hint | None = None
    provoked: bool = False
    inside: tuple[str, ...] = ()

    @property
    def unrecorded(self) -> bool:
        """Whether this result means that no recording holds the real one."""
        return not self.ok and bool(self.data["error"]["code"] == NOT_RECORDED)

    @property
    def is_list(self) -> bool:
        """Whether the records stand in a list."""
        return bool(self.inside) or isinstance(self.data, list)

    @property
    def records(self) -> list[Any]:
        """The records of `data`, wherever their list stands; a single one as a list of it."""
        data = self.data
        for key in self.inside:
            data = data.get(key) if isinstance(data, dict) else None
        if data is None and self.inside:
            return []
        return data if isinstance(data, list) else [data]

    def with_records(self, records: list[Any], **changes: Any) -> Result:
        """A copy with other records in the place of these, and some attributes replaced.

        Args:
            records: as many as there are now, unless they stand in a list.
            changes: the new values of other attributes, by name.

        Returns:
            Another result; this one stays as it is.
        """
        data: Any = records if self.is_list else records[0]
        if self.inside:
            data = _put(self.data, self.inside, records)
        return self.with_(data=data, **changes)

    def with_(self, **changes: Any) -> Result:
        """A copy with some attributes replaced.

        Args:
            changes: the new values, by the name of the attribute.

        Returns:
            Another result; this one stays as it is.
        """
        return msgspec.structs.replace(self, **changes)


def _put(data: Any, keys: tuple[str, ...], records: list[Any]) -> Any:
    """The data with another list at the end of some keys; as it is where they lead nowhere."""
    if not keys:
        return records
    if not isinstance(data, dict) or keys[0] not in data:
        return data
    return {**data, keys[0]: _put(data[keys[0]], keys[1:], records)}


BROKEN_SHIFT = "broken_shift"
"""The name of the step that ends an episode in which the code of a shift has raised."""
OWN_OUTAGE = "own_outage"
"""The name of the step that ends an episode in which only the agent's own program says that what it
needs is out of order. Nobody else can tell, so such an episode is void and still not excused."""
DROPPED = "dropped_connection"
"""The name of the step that ends an episode in which a server of the user's broke off a call. A bad
call of the agent's may have done that, so such an episode is void and still not excused."""
NOT_RECORDED = "not_recorded"
"""The error of a true call that the recording does not hold; its result is unknown."""


class ToolFailure(Exception):
    """A true tool refuses a call: a code and a sentence, which the agent sees.

    Args:
        code: one word for programs; "not_found" says that what was asked about does not exist.
        message: a sentence for the agent.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def error(code: str, message: str, hint: Hint | None = None, provoked: bool = False) -> Result:
    """A failed result."""
    data = {"error": {"code": code, "message": message}}
    return Result(False, data, hint=hint, provoked=provoked)
