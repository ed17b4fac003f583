"""xLAM and APIGen: a query, its tools, and the calls that answer it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
from toolshift.data.formats.schemas import as_json_schema, json_type, spoken_type


class XLAM:
    """`{"query", "tools", "answers"}`, the last two as JSON in strings or as lists."""

    name = "xlam"

    def recognises(self, row: Mapping[str, Any]) -> bool:
        """Whether the row has these columns."""
        return "query" in row and "tools" in row and "answers" in row

    def read(self, row: Mapping[str, Any]) -> Conversation:
        """The conversation of a row: a question, and one message of calls.

        Args:
            row: as the file has it.

        Returns:
            What was said.

        Raises:
            RowFault: where it cannot be read.
        """
        if not isinstance(row["query"], str):
            raise RowFault("query is no text")
        tools = tuple(_tool(raw, n) for n, raw in enumerate(_list(row["tools"], "tools")))
        calls = tuple(_call(raw) for raw in _list(row["answers"], "answers"))
        said = Message("assistant", "", calls, source=1)
        return Conversation(tools, (Message("user", row["query"], source=0), said))

    def write(self, conversation: Conversation, row: Mapping[str, Any] | None) -> Row:
        """A row.

        Args:
            conversation: what to write.
            row: that it was read from; None where that had another format.

        Returns:
            The row.

        Raises:
            RowFault: where more was said than a question and calls.
        """
        asked, *rest = [m for m in conversation.messages if m.role != "system"]
        if asked.role != "user" or len(rest) != 1 or rest[0].role != "assistant" or rest[0].text:
            raise RowFault("xlam holds one question and its calls, and no results")
        raws = _list(row["tools"], "tools") if row else []
        tools = [_written(tool, raws) for tool in conversation.tools]
        calls = [{"name": c.name, "arguments": c.arguments} for c in rest[0].calls]
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
    if _is_schema(parameters):
        schema = as_json_schema(parameters)
    else:
        properties = {name: _schema(one) for name, one in parameters.items()}
        required = [name for name, one in parameters.items() if _is_required(one)]
        schema = {"type": "object", "properties": properties, "required": required}
    told = str(inner.get("description") or "")
    function = {"name": inner["name"], "description": told, "parameters": schema}
    return ToolShown(function, place, {name: name for name in schema.get("properties") or {}})


def _schema(one: Any) -> dict[str, Any]:
    if not isinstance(one, Mapping):
        return {}
    said = str(one.get("type") or "")
    out: dict[str, Any] = {"type": json_type(said)} if json_type(said) else {}
    out |= {"description": str(one["description"])} if one.get("description") else {}
    if one.get("default") not in (None, ""):
        out["default"] = one["default"]
    return out


def _is_required(one: Any) -> bool:
    if not isinstance(one, Mapping):
        return False
    if isinstance(one.get("required"), bool):
        return bool(one["required"])
    return "default" not in one and "optional" not in str(one.get("type")).lower()


def _written(tool: ToolShown, raws: list[Any]) -> dict[str, Any]:
    raw = raws[tool.source] if tool.source is not None and raws else {}
    inner = raw.get("function", raw)
    before = inner.get("parameters") or {}
    like = raws[0] if raws and not raw else {}
    if _is_schema(like.get("function", like).get("parameters") or {}):
        return rewrapped(tool, raws)  # one that was added is written as the others are
    schema = tool.function.get("parameters") or {}
    properties = schema.get("properties") or {}
    parameters: Any
    if before and _is_schema(before):
        parameters = {**before, "properties": _kept(tool, properties, before["properties"])}
        if "required" in before or schema.get("required"):
            parameters["required"] = schema.get("required") or []
    else:
        parameters = _kept(tool, properties, before)
        needed = schema.get("required") or []
        for name, one in parameters.items():
            if tool.params.get(name) not in before and name not in needed:
                one.setdefault("type", "str")
                one["type"] += ", optional"
    told = {"name": tool.function["name"], "description": tool.function.get("description", "")}
    own = {**inner, **told, "parameters": parameters}
    return {**raw, "function": own} if "function" in raw else own


def _kept(
    tool: ToolShown, properties: Mapping[str, Any], before: Mapping[str, Any]
) -> dict[str, Any]:
    """Each parameter as it was written, under the name and with the text that is shown."""
    out = {}
    for name, schema in properties.items():
        raw = before.get(tool.params.get(name, ""))
        told = schema.get("description", "")
        if not isinstance(raw, Mapping):
            out[name] = {"description": told, "type": spoken_type(schema)}
        elif told != str(raw.get("description") or ""):
            out[name] = {**raw, "description": told}
        else:
            out[name] = dict(raw)
    return out


XLAM_ROWS = XLAM()
