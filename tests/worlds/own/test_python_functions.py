"""What counts as a tool in a module of the user's, how it is called, and what it may do."""

from __future__ import annotations

import sys
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from toolshift.core.calls import ToolCall
from toolshift.core.errors import UsageError
from toolshift.core.message import Reply
from toolshift.core.scene import Scene
from toolshift.core.values import as_json
from toolshift.dialects import DIALECTS, as_request
from toolshift.episode.draw import make_scene
from toolshift.episode.episode import Episode, messages
from toolshift.worlds.own import load
from toolshift.worlds.own.file import WorldFile
from toolshift.worlds.own.python import PythonSource

MODULE = '''
from __future__ import annotations
import functools
import sys
from math import hypot
from pydantic import BaseModel


class Inner(BaseModel):
    code: str


class Outer(BaseModel):
    inner: Inner
    later: Later | None = None


class Later(BaseModel):
    code: str


def plain(x: int, y: int = 2) -> dict:
    """Adds.

    Args:
        x: the first.
    """
    return {"sum": x + y}


def places(first: int, second: int = 5, /, third: int = 7) -> list:
    return [first, second, third]


def many(first: int, *names: str, sep: str = "-", **options: int) -> list:
    return [first, *names, sep, options]


def wrap(outer: Outer) -> Outer:
    return Outer(inner=Inner(code=outer.inner.code * 2), later=Later(code="b"))


def leave(how: str) -> str:
    if how == "exit":
        sys.exit("no more")
    if how == "interrupt":
        raise KeyboardInterrupt
    if how == "generator":
        raise GeneratorExit
    return {"empty": "", "half": "a\\ud800b", "deep": {"k": ["\\ud800"]}, "fine": "OK-1"}[how]


def fail(how: str) -> dict:
    raise ValueError("half \\ud800")


filled = functools.partial(plain, y=3)
filled_by_place = functools.partial(plain, 4)
dressed = functools.update_wrapper(functools.partial(plain, y=30), plain)


@functools.lru_cache
def cached(x: int) -> dict:
    """Kept."""
    return {"kept": x}


class Adder:
    """Adds its own."""

    def __call__(self, x: int) -> dict:
        return {"added": x + 1}


class Decorated:
    def __init__(self, function):
        self.function = function
        functools.update_wrapper(self, function)

    def __call__(self, *args, **kwargs):
        return self.function(*args, **kwargs)


adder = Adder()


@Decorated
def dotted(x: int) -> dict:
    """With dots."""
    return {"dots": "." * x}


lam = lambda x: {"lam": x}


class Shop:
    def add(self, x: int) -> dict:
        return {"added": x}

    @staticmethod
    def fixed(x: int) -> dict:
        """Static."""
        return {"fixed": x}

    @classmethod
    def kept(cls, x: int) -> dict:
        return {"name": cls.__name__}

    @property
    def broken(self):
        raise RuntimeError

    five = functools.partialmethod(add, 5)


class Greedy:
    def __init__(self, needed):
        self.needed = needed

    def get(self) -> int:
        return self.needed


greedy = functools.partial(Greedy, 3)


def bare() -> dict:
    return {"n": 1}


class Held:
    def __init__(self, func):
        self.func = func
'''


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    path = tmp_path / "kinds_of_tools.py"
    path.write_text(MODULE)
    monkeypatch.delitem(sys.modules, path.stem, raising=False)
    return path


def source(module: Path, name: str = "") -> PythonSource:
    reference = f"{module.stem}:{name}".rstrip(":")
    tools = {"python": reference}
    file = WorldFile(module, "w", "", tools, None, (), "", lambda place: "w")
    return PythonSource(file)


def shown(source: PythonSource, name: str) -> dict[str, Any]:
    return next(tool for tool in source.listed if tool["name"] == name)


@pytest.mark.parametrize(
    ("name", "tool", "arguments", "result"),
    [
        ("", "filled", {"x": 1}, {"sum": 4}),
        ("", "filled_by_place", {"y": 1}, {"sum": 5}),
        ("", "dressed", {"x": 1}, {"sum": 31}),
        ("", "cached", {"x": 1}, {"kept": 1}),
        ("", "dotted", {"x": 2}, {"dots": ".."}),
        ("", "places", {"first": 1}, [1, 5, 7]),
        ("", "places", {"first": 1, "third": 3}, [1, 5, 3]),
        ("", "many", {"first": 1}, [1, "-", {}]),
        ("", "many", {"first": 1, "names": ["a", "b"], "options": {"k": 1}, "sep": "+"},
         [1, "a", "b", "+", {"k": 1}]),
        ("", "wrap", {"outer": {"inner": {"code": "a"}}},
         {"inner": {"code": "aa"}, "later": {"code": "b"}}),
        ("filled", "filled", {"x": 1}, {"sum": 4}),
        ("cached", "cached", {"x": 1}, {"kept": 1}),
        ("adder", "adder", {"x": 1}, {"added": 2}),
        ("dotted", "dotted", {"x": 1}, {"dots": "."}),
        ("lam", "lam", {"x": 1}, {"lam": 1}),
        ("bare", "bare", {}, {"n": 1}),
        ("Shop", "fixed", {"x": 1}, {"fixed": 1}),
        ("Shop", "five", {}, {"added": 5}),
        ("Shop", "kept", {"x": 1}, {"name": "Shop"}),
        ("greedy", "get", {}, 3),
    ],
)  # fmt: skip
def test_what_can_be_called_is_a_tool(
    module: Path, name: str, tool: str, arguments: dict[str, Any], result: Any
) -> None:
    made = source(module, name)
    assert shown(made, tool)["name"] == tool
    found = made.open().call(tool, arguments)
    assert found.ok, found
    assert found.data == result


def test_what_a_partial_has_filled_in_is_not_shown(module: Path) -> None:
    made = source(module)
    for name, params in {"filled": ["x"], "filled_by_place": ["y"], "dressed": ["x"]}.items():
        tool = shown(made, name)
        assert [*tool["inputSchema"]["properties"]] == params
        assert tool["description"] == "Adds."
        refused = made.open().call(name, {"x": 1, "y": 2})
        assert refused.data["error"]["code"] in ("invalid_arguments", "tool_error")
    assert shown(made, "filled")["inputSchema"]["required"] == ["x"]


def test_any_number_of_arguments_is_a_list_or_an_object(module: Path) -> None:
    schema = shown(source(module), "many")["inputSchema"]
    assert schema["required"] == ["first"]
    assert schema["properties"]["names"] == {"type": "array", "items": {"type": "string"}}
    assert schema["properties"]["options"] == {
        "type": "object", "additionalProperties": {"type": "integer"},
    }  # fmt: skip
    tools = source(module).open()
    for given in ({"names": "a"}, {"names": [1]}, {"options": [1]}, {"options": {"k": "a"}}):
        wrong = tools.call("many", {"first": 1, **given})
        assert wrong.data["error"]["code"] == "invalid_arguments"
    missing = tools.call("places", {"third": 1})
    assert missing.data["error"]["message"] == "missing a required argument: 'first'"


def test_a_module_gives_its_own_functions_and_objects_where_all_names_them(module: Path) -> None:
    names = {tool["name"] for tool in source(module).listed}
    assert {"plain", "filled", "dressed", "cached", "dotted", "lam"} <= names
    assert not {"adder", "hypot", "greedy", "Shop"} & names
    module.write_text(MODULE + '\n__all__ = ["adder", "filled", "dotted", "Shop"]\n')
    sys.modules.pop(module.stem)
    assert [tool["name"] for tool in source(module).listed] == ["adder", "filled", "dotted"]


@pytest.mark.parametrize(
    ("more", "name", "said"),
    [
        ("held = Held(plain)", "", "kinds_of_tools:held is a Held, which holds a function"),
        ("held = Held(plain)", "held", "kinds_of_tools:held is a Held, which holds a function"),
        ("", "Greedy", "kinds_of_tools:Greedy is called without arguments, and raised TypeError"),
        ("def make(): return 3", "make", "what kinds_of_tools:make returns has no public method"),
        ("def take(x: Adder): ...", "", "no JSON can be read as its argument x: "),
    ],
)
def test_what_cannot_be_a_tool_is_said_in_a_sentence(
    module: Path, more: str, name: str, said: str
) -> None:
    module.write_text(f"{MODULE}\n{more}\n")
    with pytest.raises(UsageError, match=said):
        source(module, name)


# -- what a tool may do --------------------------------------------------------------------------


def test_an_exit_is_the_failure_of_the_tool_and_ctrl_c_is_not(module: Path) -> None:
    tools = source(module).open()
    assert tools.call("leave", {"how": "exit"}).data["error"] == {
        "code": "tool_error",
        "message": "the tool called sys.exit('no more')",
    }
    assert tools.call("leave", {"how": "generator"}).data["error"]["message"] == "GeneratorExit"
    with pytest.raises(KeyboardInterrupt):
        tools.call("leave", {"how": "interrupt"})


def test_half_a_character_is_a_question_mark(module: Path) -> None:
    tools = source(module).open()
    assert tools.call("leave", {"how": "half"}).data == "a?b"
    assert tools.call("leave", {"how": "deep"}).data == {"k": ["?"]}
    assert tools.call("fail", {"how": ""}).data["error"]["message"] == "half ?"


def scene_of(module: Path) -> Scene:
    file = module.with_name("tasks.yaml")
    file.write_text(
        f"world: w\ntools: {{python: '{module.stem}:leave'}}\nwrites: []\ntasks:\n"
        "  - {id: a, ask: Get it., calls: [{name: leave, arguments: {how: fine}}],"
        " check: {answer: OK-1}}\n"
    )
    return make_scene(load(file), "task", 0)


def test_an_empty_result_is_shown_in_every_dialect(module: Path) -> None:
    """Endpoints refuse a conversation in which a call has no result."""
    episode = Episode(scene_of(module))
    episode.take(Reply("", (ToolCall("leave", {"how": "empty"}, "c1"),)))
    said = messages(episode.scene, episode.steps, as_it_came=True)
    assert said[-1] == {"role": "tool", "tool_call_id": "c1", "content": ""}
    written = {name: as_request(episode.observation, name, "m") for name in DIALECTS.names()}
    assert written["chat"]["messages"][-1] == said[-1]
    assert written["responses"]["input"][-1] == {
        "type": "function_call_output", "call_id": "c1", "output": "",
    }  # fmt: skip
    assert written["anthropic"]["messages"][-1]["content"] == [
        {"type": "tool_result", "tool_use_id": "c1", "content": ""}
    ]
    [part] = written["gemini"]["contents"][-1]["parts"]
    assert part["functionResponse"]["response"] == {"output": ""}


def test_a_call_beside_the_last_answer_and_the_answer_itself_have_no_result(module: Path) -> None:
    episode = Episode(scene_of(module))
    episode.take(Reply("", (ToolCall("leave", {"how": "empty"}),)))
    episode.take(Reply("", (ToolCall("final_answer", {"answer": "OK-1"}),)))
    assert [message["role"] for message in messages(episode.scene, episode.steps)] == [
        "system", "user", "assistant", "tool", "assistant",
    ]  # fmt: skip


FORWARD = """
from __future__ import annotations
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from decimal import Decimal


@dataclass
class Leaf:
    name: str
    worth: Decimal
    more: dict[str, Leaf] = field(default_factory=dict)


class Tree(TypedDict, total=False):
    name: str
    left: Tree | None


def grow(leaf: Leaf, size: int, worth: Decimal = 1) -> list:
    return [type(leaf.more["a"]) is Leaf, leaf.worth, size, worth]


def cut(tree: Tree) -> Tree:
    return tree["left"]
"""


def test_classes_that_name_themselves_or_what_only_type_checkers_see(module: Path) -> None:
    module.write_text(FORWARD)
    made = source(module)
    grow, cut = (shown(made, name)["inputSchema"]["properties"] for name in ("grow", "cut"))
    assert grow["leaf"]["properties"].keys() == {"name", "worth", "more"}
    assert grow["size"] == {"type": "integer"}
    assert cut["tree"]["properties"]["name"] == {"type": "string"}
    leaf = {"name": "a", "worth": 2, "more": {"a": {"name": "b", "worth": 3}}}
    tools = made.open()
    assert tools.call("grow", {"leaf": leaf, "size": 4}).data == [True, 2, 4, 1]
    assert tools.call("cut", {"tree": {"left": {"name": "b"}}}).data == {"name": "b"}
    wrong = tools.call("grow", {"leaf": {"name": 1, "worth": 2}, "size": 4})
    assert wrong.data["error"]["code"] == "invalid_arguments"


LAZY = """
from __future__ import annotations
from dataclasses import dataclass


class Lazy:
    def __getattr__(self, name):
        raise ImportError(name)


lazy = Lazy()
KINDS = {"red": int}


class Table:
    frame: lazy.DataFrame
    kind: KINDS["blue"]


@dataclass
class Row:
    kind: KINDS["blue"]
    size: int


def add(row: Row, to: lazy.DataFrame, size: int = 1) -> list:
    return [row.kind, row.size, to, size]
"""


def test_annotations_that_raise_stand_for_anything(module: Path) -> None:
    module.write_text(LAZY)
    made = source(module)
    add = shown(made, "add")["inputSchema"]["properties"]
    assert (add["row"]["properties"]["size"], add["size"]["type"]) == (
        {"type": "integer"},
        "integer",
    )
    arguments = {"row": {"kind": 2, "size": 3}, "to": [4], "size": 5}
    assert made.open().call("add", arguments).data == [2, 3, [4], 5]


LATE = """
from dataclasses import dataclass
from time import sleep


@dataclass
class Item:
    size: "int"


sleep(0.02)
LAST = 1


def look() -> int:
    from {name} import LAST

    return LAST
"""


def test_a_tool_that_imports_its_own_module_finds_it_whole_beside_other_episodes(
    module: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "pydantic", raising=False)
    module.write_text(LATE.format(name=module.stem))
    made = source(module)
    tools, found, done = made.open(), set(), Event()

    def look() -> None:
        while not done.is_set():
            found.add(as_json(tools.call("look", {}).data))

    other = Thread(target=look)
    other.start()
    for _ in range(5):
        made.open()
    done.set()
    other.join()
    assert found == {"1"}
