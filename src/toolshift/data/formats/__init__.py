"""The formats of tool-use data, found by name or by what a row holds.

Other packages add theirs by the entry-point group `toolshift.formats`; each is an object as
`data.conversation.Format` describes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from toolshift.core.errors import described
from toolshift.core.registry import Registry, no_such
from toolshift.data.conversation import Conversation, Format, RowFault
from toolshift.data.traces import nearest, not_known, raws_of

FORMATS: Registry[Format] = Registry(
    "format",
    {
        "anthropic": "toolshift.data.formats.of_dialects:ANTHROPIC_ROWS",
        "gemini": "toolshift.data.formats.of_dialects:GEMINI_ROWS",
        "langchain": "toolshift.data.formats.langchain:LANGCHAIN",
        "calls-in-text": "toolshift.data.formats.in_text:CALLS_IN_TEXT_ROWS",
        "openai": "toolshift.data.formats.openai:OPENAI",
        "prompt-completion": "toolshift.data.formats.prompt_completion:PROMPT_COMPLETION_ROWS",
        "responses": "toolshift.data.formats.responses:RESPONSES_ROWS",
        "hermes": "toolshift.data.formats.hermes:HERMES",
        "sharegpt": "toolshift.data.formats.sharegpt:SHAREGPT",
        "xlam": "toolshift.data.formats.xlam:XLAM_ROWS",
        "toolace": "toolshift.data.formats.toolace:TOOLACE",
        "adp": "toolshift.data.formats.adp:ADP_ROWS",
        "glaive": "toolshift.data.formats.in_text:GLAIVE_ROWS",
        "chat-template": "toolshift.data.formats.in_text:TEMPLATED_ROWS",
    },
    "toolshift.formats",
    wrong=no_such(Format, "format"),
)


READS = {
    "anthropic": "requests of Anthropic: blocks `tool_use` and `tool_result`, `input_schema`",
    "gemini": "requests of Gemini: `contents` with `functionCall`, `functionDeclarations`",
    "langchain": "`messages` as LangChain dumps them: `type` with `data`, `lc` with `kwargs`, flat",
    "calls-in-text": "`messages` with roles whose calls stand in the texts of the assistant, in "
    "any form that models write (Nemotron, When2Call, Qwen, Llama, ReAct, ...); tools in a column, "
    "or in JSON in the text of the system or of a user; results also as turns of the user in "
    "`<tool_response>`",
    "openai": "`messages` with roles, and `tools`: OpenAI, TRL and Toucan; also `functions` and "
    "`function_call`; either column, or each tool, as JSON in a string; tools in another column "
    "where `tools` is empty; calls and results as turns of the roles `tool_call` and "
    "`tool_response`, as Toucan and other data for ms-swift have them",
    "prompt-completion": "`prompt` and `completion` of TRL, both lists of messages as OpenAI has "
    "them, and `tools`; the completion is learned",
    "responses": "`input` with items of OpenAI's Responses, and `tools`; also `output` and "
    "`instructions`",
    "hermes": "ShareGPT turns with `<tools>`, `<tool_call>`, `<tool_response>`",
    "sharegpt": "ShareGPT turns and a column `tools`; calls are turns from `function_call`",
    "xlam": "`query`, `tools`, `answers`: xLAM and APIGen; one question, no results; types in "
    "words of Python, and numbers in texts",
    "toolace": '`system` with functions in JSON, calls as `[name(argument="value")]`',
    "adp": "Agent Data Protocol; tools are read from `details.tools` or `details.available_apis`",
    "glaive": "`system` and `chat` of Glaive v2, calls as `<functioncall>`",
    "chat-template": "one text with the marks of a chat template (ChatML, Llama 3 and 4, Gemma, "
    "Granite, Zephyr, Phi, GLM), calls in any form that models write",
}
"""What rows of each of our formats hold; the docs show it."""
ONLY_BACK = ("langchain", "calls-in-text", "prompt-completion", "glaive", "chat-template")
"""Formats that are written in rows that are of them, and not by `--to`."""


_COLUMNS = {
    **dict.fromkeys(("anthropic", "langchain", "calls-in-text", "openai"), "messages"),
    **dict.fromkeys(("hermes", "sharegpt", "toolace"), "conversations"),
}
"""The column in which formats hold their conversation, where several share one."""
_NEAR = {
    "messages": "messages with a `role`",
    "conversations": "turns with `from` and `value`, or no tools stand beside it",
}
"""What a column of a known name should hold."""


def recognised(row: Mapping[str, Any]) -> Format:
    """The format of a row, by what is in it; the first of those that read the same column."""
    found: dict[str, Format] = {}
    for each in _all():
        if each.recognises(row):
            found.setdefault(_COLUMNS.get(each.name, each.name), each)
    if len(found) == 1:
        return next(iter(found.values()))
    if found:
        names = " and ".join(each.name for each in found.values())
        raise RowFault(f"it may be {names}: say which by --format, or leave the other column out")
    for raw in (raws_of(row) or ())[:1]:
        raise RowFault(not_known(raw))
    for column, what in _NEAR.items():
        if column in row:
            raise RowFault(f"`{column}` is no list of {what}")
    columns = ", ".join(map(str, list(row)[:8])) or "none"
    near = nearest(row)
    near = f"; nearest are {near}" if near else ""
    raise RowFault(
        f"no known format has these columns: {columns} (known: {', '.join(FORMATS.names())}){near}"
    )


@cache
def _all() -> tuple[Format, ...]:
    """All formats: a row is shown to each of them."""
    return tuple(FORMATS.all().values())


def read_as(form: Format, row: Mapping[str, Any]) -> Conversation:
    """The conversation of a row; whatever its reader raises is a fault of the row."""
    try:
        return form.read(row)
    except (AttributeError, LookupError, TypeError, ValueError, RecursionError) as fault:
        if isinstance(fault, RowFault):
            raise
        raise RowFault(f"it is not as {form.name} should be ({described(fault)})") from None
