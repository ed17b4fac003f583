"""Each of the 31 commands of before still runs; what has moved says its new form on stderr."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from running import Run

import toolshift as package
from toolshift.cli.group import GOES, HIDDEN, OLD, OLD_OPTIONS, SECTIONS, toolshift
from toolshift.cli.group import renewed as renewed_words
from toolshift.core.errors import UsageError

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_tools"
SMALL = ("--agent", "oracle", "--tasks", "1", "--no-placebo", "--shift", "clean")
TOOL = {"name": "find", "description": "Finds it", "inputSchema": {"type": "object"}}
CHAT = {"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}

CALLS: dict[str, tuple[tuple[str, ...], int, str]] = {
    # name: the words of before, the exit code of before, the new form that is said
    "run": (("run", *SMALL, "--out", "new"), 0, ""),
    "report": (("report", "run", "--no-html"), 0, ""),
    "leaderboard": (("leaderboard", "run", "--out", "site"), 0, "report RUN... --site FOLDER"),
    "compare": (("compare", "run", "run", "--agent", "oracle"), 0, ""),
    "gate": (("gate", "run", "--baseline", "run", "--margin", "50", "--agent", "oracle"), 3, ""),
    "trace": (("trace", "run"), 0, ""),
    "show": (("show", "poi/booking", "--shift", "merged_tools:2"), 0, ""),
    "minimise": (("minimise", "run", "FAILED", "--out", "test_it.py"), 0, ""),
    "regrade": (("regrade", "run"), 0, ""),
    "recheck": (("recheck", "run", "--sample", "3"), 0, "replay RUN --sample NUMBER"),
    "replay": (("replay", "run"), 0, ""),
    "list": (("list", "suites"), 0, ""),
    "check": (("check", "no_such_entity", "--tasks", "2"), 0, ""),
    "lock": (("lock", "tools.json", "--out", "a.lock"), 0, ""),
    "verify": (("verify", "tools.lock", "tools.json"), 0, ""),
    "watch": (("watch", "calls.jsonl"), 0, ""),
    "schedule": (("schedule", "cron", "--", *SMALL[:4]), 0, "examples/schedule"),
    "trend": (("trend", "drift", "--fail-on-loss"), 0, "report FOLDER --site FOLDER"),
    "data": (("data", "--out", "rows.jsonl", "--count", "2"), 0, ""),
    "augment": (("augment", "chats.jsonl", "--out", "more.jsonl"), 2, ""),
    "train": (("train", "sft", "--data", "gone.jsonl", "--out", "model"), 2, ""),
    "retrain": (("retrain", "gone.lock", "--out", "model"), 2, ""),
    "export": (("export", "trl", "--out", "packed"), 0, ""),
    "world": (("world", "check", "tasks.yaml"), 0, "check FILE"),
    "shift": (("shift", "show", "semantic_rename"), 0, "show SHIFT"),
    "serve": (("serve", "--task", "poi/visit"), 2, ""),
    "proxy": (("proxy", "--dry-run", "--", sys.executable, "-c", "pass"), 2, "'mcp:COMMAND"),
    "model-proxy": (("model-proxy", "--upstream", "x"), 2, ""),
    "reproduce": (("reproduce", "--help"), 0, ""),
    "artifacts": (("artifacts", "--help"), 0, ""),
}
"""`view` serves until it is stopped, so it has a test of its own below."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small run, a day of runs, a lock, conversations and own tasks."""
    folder = tmp_path_factory.mktemp("old")
    package.evaluate(
        ["memorises_names", "oracle"],
        shifts=["identity_erasure:2"],
        tasks=2,
        placebo=False,
        out=folder / "run",
    )
    shutil.copytree(folder / "run", folder / "drift" / "2026-01-31" / "anchor")
    for file in ("shop_tools.py", "shop_checks.py", "tasks.yaml"):
        shutil.copy(EXAMPLE / file, folder / file)
    (folder / "tools.json").write_text(json.dumps([TOOL]))
    (folder / "chats.jsonl").write_text(json.dumps({"messages": CHAT}) + "\n")
    call = {"tool": "find", "arguments": {}, "answers": ["it"]}
    (folder / "calls.jsonl").write_text(json.dumps(call) + "\n")
    return folder


@pytest.fixture
def here(made: Path, toolshift: Run, tmp_path: Path) -> Callable[..., tuple[int, str, str]]:
    """The command line in a copy of that folder."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    assert toolshift("lock", "tools.json", "--out", "tools.lock")[0] == 0
    records = map(json.loads, (tmp_path / "run/episodes.jsonl").read_text().splitlines())
    failed = next(each["episode"] for each in records if not each["grade"]["passed"])
    return lambda *words: toolshift(*(failed if word == "FAILED" else word for word in words))


def test_every_command_of_before_is_tried() -> None:
    assert len({*CALLS, "view"}) == 31
    gone = {name[0] for name, old in OLD.items() if len(name) == 1 and old.form}
    assert gone == {*CALLS, "view"} - set(toolshift.list_commands(click.Context(toolshift)))


@pytest.mark.parametrize("name", CALLS)
def test_it_runs_as_before(name: str, here: Callable[..., tuple[int, str, str]]) -> None:
    words, code, form = CALLS[name]
    found, out, err = here(*words)
    assert found == code, out + err
    told = [line for line in err.splitlines() if GOES in line]
    assert [form in line for line in told] == [True] * bool(form), err


def test_view_serves_the_page_and_says_its_new_form(made: Path) -> None:
    words = [sys.executable, "-u", "-m", "toolshift", "view", str(made / "run"), "--no-browser"]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True) as it:
        assert it.stdout is not None
        assert "http://127.0.0.1:" in it.stdout.readline()
        it.send_signal(signal.SIGINT)
        _, errors = it.communicate(timeout=30)
    assert it.returncode == 0
    assert errors.splitlines()[0] == f"toolshift view is now `toolshift report --open`; {GOES}."


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (("leaderboard", "run", "--out", "a"), ("report", "run", "--site", "b")),
        (("leaderboard", "run", "--out=a", "--json"), ("report", "run", "--site=b", "--json")),
        (("trend", "drift"), ("report", "drift")),
        (("trend", "drift", "--out", "a/x.html"), ("report", "drift", "--site", "b/x.html")),
        (("recheck", "run", "--seed", "2"), ("replay", "run", "--sample", "100", "--seed", "2")),
        (("world", "check", "tasks.yaml", "--json"),
         ("check", "tasks.yaml", "--no-rules", "--json")),
        (("shift", "show", "redirect", "--json"), ("show", "redirect", "--json")),
        (("minimize", "run", "FAILED", "--json"), ("minimise", "run", "FAILED", "--json")),
        (("world", "init", "--python", "shop_tools", "--out", "a"),
         ("world", "init", "python:shop_tools", "--out", "b")),
        (("world", "init", "--mcp=true", "--out", "a"), ("world", "init", "mcp:true", "--out",
                                                         "b")),
        (("proxy", "--dry-run", "--upstream-url", "http://127.0.0.1:9/mcp"),
         ("proxy", "--dry-run", "http://127.0.0.1:9/mcp")),
        (("watch", "calls.jsonl", "--metrics", "99999"),
         ("watch", "calls.jsonl", "--metrics-port", "99999")),
    ],
    ids=" ".join,
)  # fmt: skip
def test_the_old_form_does_what_the_new_one_does(
    old: tuple[str, ...], new: tuple[str, ...], here: Callable[..., tuple[int, str, str]]
) -> None:
    first, second = here(*old), here(*new)
    assert first[0] == second[0]
    plain = [text.replace("b/", "a/").replace("in b", "in a") for text in (first[1], second[1])]
    assert plain[0].replace("check a", "check b") == plain[1].replace("check a", "check b")
    said = [line for line in first[2].splitlines() if GOES not in line]
    assert said == second[2].splitlines()
    assert GOES not in second[2]


def test_an_old_command_without_what_it_needed_writes_nothing(
    here: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    before = set(tmp_path.rglob("*"))
    code, _, err = here("leaderboard", "run")
    assert (code, "--out is missing" in err) == (2, True)
    assert set(tmp_path.rglob("*")) == before


def test_words_behind_two_dashes_are_no_options() -> None:
    words = ("proxy", "--http=1", "--", "server", "--http", "2")
    assert renewed_words(words)[0] == ["proxy", "--port=1", "--", "server", "--http", "2"]
    assert renewed_words(("run", "--out", "view"))[0] == ["run", "--out", "view"]
    with pytest.raises(UsageError, match="--out is missing"):
        renewed_words(("leaderboard",))


def test_the_help_names_no_old_command(here: Callable[..., tuple[int, str, str]]) -> None:
    _, said, _ = here("--help")
    listed = {line.split()[0] for line in said.splitlines() if line[:2] == "  " != line[2:4]}
    assert listed.isdisjoint({"view", "leaderboard", "trend", "recheck", "minimize", *HIDDEN})
    assert all(name[0] in listed for name in OLD_OPTIONS)


def test_there_are_few_commands() -> None:
    commands = sum(map(len, SECTIONS.values()))
    assert commands <= 26, "fold the new one into a command that is there (CONTRIBUTING.md)"
