"""xLAM and APIGen: a query, its tools, and the calls that answer it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from toolshift.data.conversation import (
    Call,
    Conversation,
    Message,
    Row,
    RowFault,
    ToolShown,
    arguments_of,
    decoded,
    encoded,
    rewrapped,
)
from toolshift.data.formats.schemas import (
    SPOKEN,
    as_json_schema,
    in_words,
    json_type,
    rewritten,
    said_in,
    words_in,
)


class XLAM:
    """`{"query", "tools", "answers"}`, the last two as JSON in strings or as lists."""

    name = "xlam"

    def recognises(self, row: Mapping[str, Any]) -> bool:
        """Whether the row has these columns."""
        return "query" in row and "tools" in row and "answers" in row

    def read(self, row: Mapping[str, Any]) -> Conversation:
        """The conversation of a row: a question, and one message of calls."""
        if not isinstance(row["query"], str):
            raise RowFault("query is no text")
        tools = tuple(_tool(raw, n) for n, raw in enumerate(_list(row["tools"], "tools")))
        schemas = {tool.function["name"]: tool.function["parameters"] for tool in tools}
        calls = tuple(_typed(_call(raw), schemas) for raw in _list(row["answers"], "answers"))
        said = Message("assistant", "", calls, source=1)
        return Conversation(tools, (Message("user", row["query"], source=0), said))

    def write(self, conversation: Conversation, row: Mapping[str, Any] | None) -> Row:
        """A row."""
        asked, *rest = [m for m in conversation.messages if m.role != "system"]
        if asked.role != "user" or len(rest) != 1 or rest[0].role != "assistant" or rest[0].text:
            raise RowFault(
                "xlam holds one question and its calls, and no results or answers in prose"
            )
        raws = _list(row["tools"], "tools") if row else []
        tools = [_written(tool, raws) for tool in conversation.tools]
        calls = [{"name": c.name, "arguments": c.arguments} for c in rest[0].calls]
        calls = _as_said(calls, row, self.read(row).messages[1].calls) if row else calls
        as_lists = row is not None and isinstance(row["tools"], list)
        return {
            **(row or {}),
            "query": asked.text,
            "tools": tools if as_lists else encoded(tools, row["tools"] if row else ""),
            "answers": calls if as_lists else encoded(calls, row["answers"] if row else ""),
        }


def _list(value: Any, what: str) -> list[Any]:
    found = decoded(value, what)
    if not isinstance(found, list):
        raise RowFault(f"{what} is no list")
    return found


def _call(raw: Any) -> Call:
    if not isinstance(raw, Mapping) or not isinstance(raw.get("name"), str):
        raise RowFault("an answer has no name")
    return Call(raw["name"], arguments_of(raw.get("arguments"), raw["name"]))


def _typed(call: Call, schemas: Mapping[str, Any]) -> Call:
    """A call whose values have the types that its tool declares; much data has them as texts."""
    properties = (schemas.get(call.name) or {}).get("properties") or {}
    arguments = {key: _value(one, properties.get(key)) for key, one in call.arguments.items()}
    return Call(call.name, arguments)


_OF_TYPE: dict[str, tuple[type, ...]] = {
    "integer": (int,), "number": (int, float), "boolean": (bool,),
    "array": (list,), "object": (dict,),
}  # fmt: skip


def _value(value: Any, schema: Any) -> Any:
    kinds = _OF_TYPE.get(str(schema.get("type"))) if isinstance(schema, Mapping) else None
    if kinds is None or not isinstance(value, str):
        return value
    try:
        meant = msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError):
        return value
    return meant if type(meant) in kinds else value


def _as_said(
    calls: list[dict[str, Any]], row: Mapping[str, Any], read: tuple[Call, ...]
) -> list[dict[str, Any]]:
    """Calls with the values that a row writes as texts in the texts that it has for them."""
    raws = _list(row["answers"], "answers")
    if len(raws) != len(calls):
        return calls
    out = []
    for call, raw, before in zip(calls, raws, read, strict=True):
        said = arguments_of(raw.get("arguments"), "").values()
        pairs = zip(before.arguments.values(), said, strict=True)
        arguments = dict(call["arguments"])
        for (key, value), (was, text) in zip(call["arguments"].items(), pairs, strict=False):
            arguments[key] = text if value == was else value
        out.append({**raw, **call, "arguments": arguments})
    return out


def _is_schema(parameters: Mapping[str, Any]) -> bool:
    """Whether parameters are a JSON Schema already, as some rows have them."""
    return parameters.get("type") in ("object", "dict") and "properties" in parameters


def _tool(raw: Any, place: int) -> ToolShown:
    inner = raw.get("function", raw) if isinstance(raw, Mapping) else None
    if not isinstance(inner, Mapping) or not isinstance(inner.get("name"), str):
        raise RowFault(f"tool {place} has no name")
    parameters = inner.get("parameters") or {}
    if not isinstance(parameters, Mapping):
        raise RowFault(f"tool {place}: its parameters are no object")
    schema = _read(parameters)
    told = str(inner.get("description") or "")
    function = {"name": inner["name"], "description": told, "parameters": schema}
    return ToolShown(function, place, {name: name for name in schema.get("properties") or {}})


def _read(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON Schema of parameters, in whichever of both styles they are."""
    if _is_schema(parameters):
        found: dict[str, Any] = as_json_schema(parameters)
        return found
    properties = {name: _schema(one) for name, one in parameters.items()}
    required = [name for name, one in parameters.items() if _is_required(one)]
    return {"type": "object", "properties": properties, "required": required}


def _schema(one: Any) -> dict[str, Any]:
    if not isinstance(one, Mapping):
        return {}
    said = str(one.get("type") or "")
    out: dict[str, Any] = {"type": json_type(said)} if json_type(said) else {}
    out |= {"description": str(one["description"])} if one.get("description") else {}
    if one.get("default") not in (None, ""):
        out["default"] = _value(one["default"], out)
    return out


def _is_required(one: Any) -> bool:
    if not isinstance(one, Mapping):
        return False
    if isinstance(one.get("required"), bool):
        return bool(one["required"])
    return "default" not in one and "optional" not in str(one.get("type")).lower()


def _written(tool: ToolShown, raws: list[Any]) -> dict[str, Any]:
    """A tool in the style that it had, or that the row has where that does not show."""
    raw = raws[tool.source] if tool.source is not None and raws else {}
    before = _parameters(raw)
    if not _is_schema(before or next(filter(None, map(_parameters, raws)), {})):
        parameters: Any = _in_python(tool, before)
    elif raw:
        schema = tool.function.get("parameters") or {}
        parameters = rewritten(schema, _read(before), before, words_in(raws), tool.params)
    else:
        spoken = in_words(tool.function, raws)
        wrapped: dict[str, Any] = rewrapped(ToolShown(spoken), raws)
        return wrapped
    inner = raw.get("function", raw)
    told = {"name": tool.function["name"], "description": tool.function.get("description", "")}
    own = {**inner, **told, "parameters": parameters}
    return {**raw, "function": own} if "function" in raw else own


def _parameters(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = raw.get("function", raw).get("parameters") or {}
    return found


def _in_python(tool: ToolShown, before: Mapping[str, Any]) -> dict[str, Any]:
    """Each parameter with its type in the words of Python; what has not changed as it was."""
    schema = tool.function.get("parameters") or {}
    needed = schema.get("required") or []
    out = {}
    for name, shown in (schema.get("properties") or {}).items():
        raw = before.get(tool.params.get(name, ""))
        read = _schema(raw)
        old = raw if isinstance(raw, Mapping) else {"description": "", "type": "any"}
        changed = {key: value for key, value in shown.items() if read.get(key) != value}
        kept = {key: value for key, value in old.items() if key in shown or key not in read}
        out[name] = {**kept, **said_in(changed, SPOKEN)}
        if "type" in changed or raw is not old:
            kind = out[name]["type"] if isinstance(out[name]["type"], str) else "any"
            out[name]["type"] = kind if name in needed else f"{kind}, optional"
    return out


XLAM_ROWS = XLAM()
