"""The name of a tool is renamed where it means the tool, and left where it means anything else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolshift.core.shift import NotApplicable
from toolshift.data.augment import Made, Recipe, augmented
from toolshift.data.conversation import Call, Message
from toolshift.data.prose import Prose, Renamed
from toolshift.data.tool_mentions import Seen

PROSE = Prose(
    {
        "search": Renamed("q_1", {"query": "query"}),
        "calculator": Renamed("q_2", {"sum": "sum"}),
        "list": Renamed("q_3", {}),
        "read_file": Renamed("q_4", {"path": "path"}),
    }
)
TOOL = {
    "Use the search tool to look things up.": "Use the q_1 tool to look things up.",
    "Use search to look things up.": "Use q_1 to look things up.",
    "Always call search before you answer.": "Always call q_1 before you answer.",
    "I should use search.\nAction: search": "I should use q_1.\nAction: q_1",
    "Action must be one of [search, calculator].": "Action must be one of [q_1, q_2].",
    "Tools: search, read_file": "Tools: q_1, q_4",
    "Use search for facts and calculator for sums.": "Use q_1 for facts and q_2 for sums.",
    "You have these tools:\nsearch: finds\ncalculator: adds": (
        "You have these tools:\nq_1: finds\nq_2: adds"
    ),
    "<tool>search</tool>, tool=search": "<tool>q_1</tool>, tool=q_1",
    '<invoke name="search">': '<invoke name="q_1">',
    "<tool name='read_file'/>": "<tool name='q_4'/>",
    'tool="read_file"; call(name="read_file", path=1)': 'tool="q_4"; call(name="q_4", path=1)',
    "A tool called search, `search` and search(query='x')": (
        "A tool called q_1, `q_1` and q_1(query='x')"
    ),
    "read_file/search; functions.read_file": "q_4/q_1; functions.q_4",
    "Nutze \u00absearch\u00bb zuerst.": "Nutze \u00abq_1\u00bb zuerst.",
    "Nutze \u201esearch\u201c zuerst.": "Nutze \u201eq_1\u201c zuerst.",
    "\u300csearch\u300d": "\u300cq_1\u300d",
}
OTHER = (
    "I search again, get the list and search for the list.",
    "Use search engines, the tool-list and research.",
    "The use of search, no calls to search.",
    "The search is complete; here is the list of results from the search.",
    "You help users search and list files. Search results: three.",
    "Do a search. Make a list. I could not find it with a search, so I looked at the list.",
    "tools/read_file.py, src/read_file/main.py, read_file.py, read_file@x.org, C:\\x\\read_file",
    "https://x.org/read_file?q=1 and SELECT read_file FROM search WHERE read_file = 1",
    "re.search(pattern)",
)
UNSURE = (
    "- search: looks things up",
    "**search**",
    "<search>tea</search>",
    "I use the search to find it.",
    "Call read_file, then search.",
    "If you use search, note that search is slow.",
)


@pytest.mark.parametrize("text", TOOL)
def test_what_is_plainly_the_tool_is_renamed(text: str) -> None:
    assert PROSE.say(text) == TOOL[text]
    assert PROSE.inverse.say(TOOL[text]) == text


@pytest.mark.parametrize("text", OTHER)
def test_what_is_plainly_something_else_stays(text: str) -> None:
    assert PROSE.say(text) == text


@pytest.mark.parametrize("text", UNSURE)
def test_where_it_may_be_either_nothing_is_guessed(text: str) -> None:
    with pytest.raises(NotApplicable, match="may mean the tool or something else"):
        PROSE.say(text)


def test_a_word_that_may_be_either_is_none_of_a_tool_that_keeps_its_name() -> None:
    prose = Prose({"search": Renamed("search", {}), "read_file": Renamed("q_4", {})})
    assert prose.say("- search: looks\nread_file.") == "- search: looks\nq_4."


CALL = Message("assistant", "", (Call("read_file", {"path": "a.py"}),))
RESULT = Message("tool", '{"names": ["read_file"], "code": "x\\nread_file(1)"}')


@pytest.mark.parametrize("before", [RESULT, Message("user", 'What is {"read_file": 1}?')])
def test_what_was_said_before_is_quoted(before: Message) -> None:
    here = Seen((before, CALL)).at(1, "assistant")
    assert PROSE.say("Here is read_file. `read_file`", here) == "Here is read_file. `read_file`"
    assert PROSE.say("I use read_file.", here) == "I use q_4."


def test_what_an_argument_holds_or_code_defines_is_quoted() -> None:
    written = Message("assistant", "", (Call("write", {"text": "def read_file(path): ..."}),))
    defined = Message("assistant", "def read_file(path):\n    ...")
    for said in (written, defined):
        assert (
            PROSE.say("read_file(1) it is.", Seen((said,)).at(0, "assistant"))
            == "read_file(1) it is."
        )


def test_a_prompt_quotes_nothing_of_what_comes_later() -> None:
    here = Seen((Message("system", ""), CALL, RESULT)).at(0, "system")
    assert PROSE.say('{"name": "read_file"}; use read_file.', here) == ('{"name": "q_4"}; use q_4.')
    with pytest.raises(NotApplicable):
        PROSE.say("The result has read_file.", here)


@pytest.mark.parametrize("text", ["What is read_file?", "https://x.org/read_file", "a/read_file"])
def test_a_user_who_names_the_tool_or_a_path_gives_nothing_to_quote(text: str) -> None:
    assert (
        PROSE.say("Here is read_file.", Seen((Message("user", text),)).at(1, "assistant"))
        == "Here is q_4."
    )


# -- rows --------------------------------------------------------------------------------------


def row(prompt: str, answer: str, result: str = '{"hits": 3}') -> dict[str, Any]:
    """A conversation that searches."""
    inner = {"name": "search", "arguments": '{"query": "tea"}'}
    query = {"type": "object", "properties": {"query": {"type": "string"}}}
    tools = [
        {"name": "search", "description": "Looks things up.", "parameters": query},
        {"name": "other_tool", "description": "Does another thing.", "parameters": query},
    ]
    return {
        "messages": [
            {"role": "system", "content": prompt},
            {"role": "user", "content": "Search for tea"},
            {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "function": inner}]},
            {"role": "tool", "tool_call_id": "1", "content": result},
            {"role": "assistant", "content": answer},
        ],
        "tools": [{"type": "function", "function": tool} for tool in tools],
    }


def made(given: dict[str, Any], shift: str) -> Made:
    """What becomes of a row."""
    return augmented(given, json.dumps(given).encode(), Recipe(1.0, (shift,)))


def test_a_row_in_which_a_name_may_be_either_is_not_shifted_and_says_why() -> None:
    done = made(row("- search: looks things up", "Done."), "identity_erasure:3")
    assert not done.rows
    assert done.reasons["identity_erasure"].startswith("a text says search, which may mean")


def test_prompt_and_thought_and_answer_agree_with_the_call() -> None:
    done = made(row("Use the search tool.", "I used search."), "identity_erasure:3")
    (said,) = done.rows
    name = said["tools"][0]["function"]["name"]
    assert name != "search"
    texts = [message["content"] for message in said["messages"]]
    assert texts[0] == f"Use the {name} tool."
    assert said["messages"][2]["tool_calls"][0]["function"]["name"] == name


def test_a_tool_that_goes_midway_is_noticed_by_a_plain_word_too() -> None:
    done = made(row("You help.", "I have the search tool no longer."), "endings")
    other = made(row("You help.", "I have the search tool no longer."), "tool_migrated:1")
    assert all("search tool" not in json.dumps(said["messages"][:2]) for said in done.rows)
    assert not other.rows or "search tool" not in json.dumps(other.rows[-1])
