"""Results of MCP tools as ours, and back; what no layer has touched goes back as it came.

Layers act on structured content, on text that is JSON, and on what an error says. A text that is
not JSON is one string, which a change of format leaves alone. Images, audio, links and embedded
resources pass through beside whatever the text has become.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from toolshift.core.render import NOTICE, show
from toolshift.core.tool import Result
from toolshift.core.values import held_in
from toolshift.interop.tools import Source

Raw = dict[str, Any]
LONGEST_JSON = 2_000_000
"""Characters of a text that are still read as JSON; a longer one stays a text."""
DEEPEST = 48
UPSTREAM = "upstream"
"""The code of an error that the server put into words, and no layer."""


def as_result(raw: Mapping[str, Any], source: Source | None, alone: bool = False) -> Result:
    """What a server answered, as layers take it.

    With `alone` its reader gets nothing beside: what is no text is told in words (`words_of`).
    """
    texts = words = texts_of(raw)
    if alone:
        words = words_of(raw)
        texts = texts or [text for text in map(_text_in, _blocks(raw)) if text is not None]
    if raw.get("isError"):
        return refused("\n".join(words))
    fields = source.tool.returns if source else ()
    data = raw.get("structuredContent")
    if source is not None and source.envelope and isinstance(data, dict):
        inner = data.get(source.envelope)
        if len(data) == 1 and (_is_records(inner) or inner == []):
            return Result(True, inner, fields)
        fields = ()
    if data is None and len(texts) == 1:
        data, fields = _read(texts[0]), ()
    if not is_shallow(data) or not (isinstance(data, dict) or _is_records(data)):
        data, fields = "\n".join(words), ()
    return Result(True, data, fields)


def refused(message: str) -> Result:
    """A failure in a server's own words."""
    return Result(False, {"error": {"code": UPSTREAM, "message": message}})


def as_mcp(result: Result, given: Result | None, raws: list[Raw], source: Source | None) -> Raw:
    """A result as its client reads it."""
    last = raws[-1] if raws else {}
    same = given is not None and (result.ok, result.form) == (given.ok, given.form)
    if same and given is not None and result.data == given.data:
        return _with_notice(last, result.notice)
    answer: Raw = {key: value for key, value in last.items() if key in ("_meta", "resultType")}
    answer["content"] = _content(result, raws)
    if not result.ok:
        answer["isError"] = True
    elif result.form == "json" and not isinstance(result.data, str):
        structured = "structuredContent" in last or not raws
        envelope = source.envelope if source else ""
        wrapped = bool(envelope) and not (isinstance(result.data, dict) and envelope in result.data)
        data = {envelope: result.data} if wrapped else result.data
        if structured and isinstance(data, dict):
            answer["structuredContent"] = data
    return answer


def _with_notice(raw: Raw, notice: str) -> Raw:
    if not notice:
        return raw
    told = {"type": "text", "text": NOTICE.strip() + " " + notice}
    return {**raw, "content": [*_blocks(raw), told]}


def _content(result: Result, raws: list[Raw]) -> list[Raw]:
    """A changed result in the place of what said it before; all else as and where it stood."""
    said = {"type": "text", "text": _text(result)}
    if not result.ok:
        return [said, *(block for raw in raws for block in _blocks(raw) if not _is_text(block))]
    kept: list[Raw] = []
    places: dict[int, int] = {}  # by the number of an answer, where its data stood first
    for number, raw in enumerate(raws):
        for block in _blocks(raw):
            if _is_text(block) and _told(str(block.get("text", "")), raw):
                places.setdefault(number, len(kept))
            else:
                kept.append(block)
    place = places[max(places)] if places else len(kept)
    return [*kept[:place], said, *kept[place:]]


def _text(result: Result) -> str:
    """The words of a result; those of a server are not said as data."""
    if result.ok or result.data["error"]["code"] != UPSTREAM:
        return show(result)
    said = str(result.data["error"]["message"])
    return said + (f"{NOTICE}{result.notice}" if result.notice else "")


def _is_text(block: Mapping[str, Any]) -> bool:
    return block.get("type") == "text"


def _told(text: str, raw: Mapping[str, Any]) -> bool:
    """Whether a text says nothing beside the data that the layers had."""
    data = raw.get("structuredContent")
    if data is None or len(text) > LONGEST_JSON:
        return data is None
    said = _read(text)
    return text in _strings(data) or (said is not None and said in (data, *_inside(data)))


def _inside(data: Any) -> list[Any]:
    """What stands in an envelope; of a list its records too, for servers give each a text."""
    if not isinstance(data, dict) or len(data) != 1:
        return []
    (inner,) = data.values()
    return [inner, *inner] if isinstance(inner, list) else [inner]


def _strings(data: Any) -> set[str]:
    if isinstance(data, str):
        return {data}
    inner = held_in(data)
    return set().union(*map(_strings, inner)) if inner else set()


def texts_of(raw: Mapping[str, Any]) -> list[str]:
    """The texts of an answer."""
    return [str(block.get("text", "")) for block in _blocks(raw) if block.get("type") == "text"]


def words_of(raw: Mapping[str, Any]) -> list[str]:
    """An answer in words: its texts, those of embedded resources, and what else there is."""
    return [_named(block) if (text := _text_in(block)) is None else text for block in _blocks(raw)]


def _text_in(block: Mapping[str, Any]) -> str | None:
    """The text of a block, or of the resource in it; None where it has none."""
    held = block.get("resource") if block.get("type") == "resource" else block
    text = held.get("text") if isinstance(held, dict) else None
    if _is_text(block):
        return str(block.get("text", ""))
    return text if isinstance(text, str) and held is not block else None


def _named(block: Mapping[str, Any]) -> str:
    """What stands for a block that is no text: `[image/png, 12 bytes]`, `[resource link: URI]`."""
    kind = str(block.get("type") or "content without a type")
    if kind == "resource_link":
        return f"[resource link: {block.get('uri') or block.get('name')}]"
    held = block.get("resource")
    inner: Mapping[str, Any] = held if isinstance(held, dict) else block
    uri = inner.get("uri")
    data = inner.get("data", inner.get("blob"))
    said = [f"resource {uri}"] if isinstance(uri, str) else []
    said += [str(inner["mimeType"])] if inner.get("mimeType") else [] if said else [kind]
    if isinstance(data, str):
        said.append(f"{len(data.rstrip('=')) * 3 // 4} bytes")  # of Base64
    return f"[{', '.join(said)}]"


def _blocks(raw: Mapping[str, Any]) -> list[Raw]:
    content = raw.get("content")
    return [b for b in content if isinstance(b, dict)] if isinstance(content, list) else []


def _read(text: str) -> Any:
    if len(text) > LONGEST_JSON or text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, ValueError):
        return None


def _is_records(data: Any) -> bool:
    return isinstance(data, list) and bool(data) and all(isinstance(one, dict) for one in data)


def is_shallow(data: object) -> bool:
    """Whether no object or list in it lies deeper than layers can be asked to walk."""
    level = [data] if isinstance(data, dict | list) else []
    for _ in range(DEEPEST):
        level = [inner for each in level for inner in _containers(each)]
        if not level:
            return True
    return False


def _containers(data: Any) -> list[Any]:
    inner = data.values() if isinstance(data, dict) else data
    return [one for one in inner if isinstance(one, dict | list)]


def is_opaque(raw: Mapping[str, Any]) -> bool:
    """Whether an answer is no result yet: a task that was started, or a question to the client."""
    return "content" not in raw
