"""What is asked for is done or refused: no option is passed over, and no wrong file is taken."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from running import Run, write_agent

from toolshift import evaluate
from toolshift.agents.catalog import check_settings
from toolshift.core.command_line import PLUGINS
from toolshift.core.errors import UsageError

ONE = ("--agent", "oracle", "--tasks", "1", "--kind", "listing", "--no-placebo", "--shift", "clean")
WRONG = [
    ("run", *ONE, "--judge-url", "http://x/v1", "add --judge chat:MODEL"),
    ("run", *ONE, "--isolate", "--isolate works only with programs"),
    ("run", *ONE, "--agent-timeout", "5", "for programs and chat models use --timeout"),
    ("run", *ONE, "--max-cost", "2", "works only with chat: agents"),
    (
        "run",
        "--agent",
        "mine:refuses",
        "--tasks",
        "1",
        "--max-cost",
        "2",
        "works only with chat: agents",
    ),
    ("run", *ONE, "--temperature", "1", "the option temperature is for chat: agents"),
    ("run", *ONE, "--price-in", "1", "--price-out", "2", "the option price_in is for chat:"),
    (
        "run",
        "--agent",
        "mine:refuses",
        "--tasks",
        "1",
        "--base-url",
        "http://x/v1",
        "has no effect",
    ),
    ("run", *ONE, "--timeout", "5", "is for chat: agents and for programs"),
    ("replay", "gone.zip", "--retries", "1", "--retries works only with --agent"),
    ("run", *ONE, "--shift", "redirect*0", "a number of tasks, at least 1"),
    ("run", *ONE, "--shift", "redirect*", "a number of tasks, at least 1"),
    ("report", "run", "--html", "page.html", "--no-html", "leave one of them out"),
    ("report", "run", "--model-id", "a/b", "--model-id works only with --eee FOLDER"),
    (
        "report",
        "run",
        "--hf-dataset",
        "a/b",
        "--hf-dataset works only with --hf-eval-results FOLDER",
    ),
    ("report", "gone", "gone contains no run: there is no such folder. Name the folder"),
    ("report", "mine.py", "it is a file. Name the folder"),
    ("report", ".", "name one of those in it, such as runs"),
    ("data", "--out", "x.jsonl", "--workers", "0", "'--workers': 0 is not in the range"),
    ("augment", "x.jsonl", "--out", "y.jsonl", "--workers", "-1", "'--workers': -1 is not in"),
    ("watch", "empty.jsonl", "--baseline", "mine.py", "--baseline mine.py: nothing was read"),
    ("schedule", "cron", "--at", "99 4 * * 1", "--", *ONE, "five fields are needed"),
    ("schedule", "cron", "--at", "17 4 0 * 1", "--", *ONE, "five fields are needed"),
    ("schedule", "cron", "--at", "*/0 4 * * 1", "--", *ONE, "five fields are needed"),
    ("model-proxy", "--upstream", "http://host:abc/v1", "write http(s)://host[:port]/v1"),
    ("model-proxy", "--upstream", "http://[::1/v1", "write http(s)://host[:port]/v1"),
    ("model-proxy", "--upstream", "http:///v1", "write http(s)://host[:port]/v1"),
    ("model-proxy", "--upstream", "http://x/v1?api-version=1", "write http(s)://host[:port]/v1"),
    ("model-proxy", "--upstream", "http://x/v1", "--pass-through", "works only with --shift"),
    ("schedule", "cron", "--secret", "KEY", "--", *ONE, "--secret works only with github"),
    ("schedule", "cron", "--install", "x", "--", *ONE, "--install works only with github"),
    ("schedule", "cron", "--", *ONE, "--retries", "1", "the option retries is for chat: agents"),
    ("schedule", "github", "--secret", "sk-1", "--", *ONE, "and not its value"),
    ("verify", "a.lock", "tools.json", "--agent", "oracl", "unknown agent 'oracl'"),
    ("verify", "a.lock", "--tasks", "3", "--tasks works only with --agent"),
    ("verify", "a.lock", "--out", "run", "--out works only with --agent"),
    ("verify", "a.lock", "--agent", "oracle", "--protocol", "text", "is for chat: agents"),
    ("shift", "from-diff", "a.lock", "tools.json", "a.lock is a lock: `toolshift verify a.lock"),
    ("--plugin", "runs", "list", "shifts", "it is a folder; name the file in it"),
    ("serve", "--stdio", "--task", "poi/visit", "--trace", "runs", "--trace runs is a folder"),
    ("replay", "run", "--seed", "1", "--seed works only with --sample"),
    ("replay", "run", "--sample", "3", "--agent", "oracle", "leave --agent out"),
    ("replay", "run", "0123", "--sample", "3", "leave EPISODE out"),
    ("show", "redirect", "--shift", "redirect", "--shift works only with a scene"),
    ("show", "redirect", "--size", "20", "--size works only with a scene"),
    ("show", "redirekt", "did you mean redirect"),
    ("show", "poi", "unknown task kind"),
    ("check", "redirect", "--no-rules", "--no-rules works only with files of tasks"),
    ("lock", "mcp:server 'x", "the command cannot be read"),
    ("proxy", "mcp:server 'x", "the command cannot be read"),
    ("proxy", "mcp:", "the command of the server is missing"),
    ("proxy", "mcp:a", "mcp:b", "name one server"),
    ("world", "init", "mcp:server 'x", "--out", "w.yaml", "the command cannot be read"),
    ("world", "init", "a.yaml", "b.yaml", "--out", "w.yaml", "name one SOURCE"),
    ("world", "record", "gone.yaml", "--out", "gone/x.jsonl", "--out gone/x.jsonl: cannot write"),
]


@pytest.mark.parametrize("words", WRONG, ids=lambda words: " ".join(words[:-1])[-60:])
def test_it_is_refused_with_what_to_do(
    toolshift: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv(PLUGINS, "")  # so that no other test loads what is named here
    write_agent(tmp_path)
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "manifest.json").touch()
    tool = {"name": "find", "description": "Finds it", "inputSchema": {"type": "object"}}
    (tmp_path / "tools.json").write_text(json.dumps([tool]))
    if "a.lock" in words:
        assert toolshift("lock", "tools.json", "--out", "a.lock")[0] == 0
    code, _, err = toolshift(*words[:-1])
    assert code == 2
    assert words[-1] in err


def test_nothing_is_made_smaller_that_could_not_be_kept(toolshift: Run, tmp_path: Path) -> None:
    shift = ("--shift", "transient_error", "--no-placebo", "--tasks", "1", "--kind", "listing")
    assert toolshift("run", "--agent", "gives_up", *shift, "--out", "run")[0] == 0
    records = map(json.loads, (tmp_path / "run" / "episodes.jsonl").read_text().splitlines())
    (failed,) = [each["episode"] for each in records if not each["grade"]["passed"]]
    code, _, err = toolshift("minimise", "run", failed, "--out", "gone/test_it.py")
    assert (code, "--out gone/test_it.py: cannot write there" in err) == (2, True)
    assert "smaller scenes" not in err


@pytest.mark.parametrize(
    ("agent", "name", "meant"),
    [("oracle", "shift", "shifts"), ("chat:x", "taks", "tasks"), ("oracle", "retry", "retries")],
)
def test_a_misspelt_argument_of_evaluate_is_refused(agent: str, name: str, meant: str) -> None:
    with pytest.raises(UsageError, match=f"unknown argument '{name}': did you mean .*{meant}"):
        evaluate(agent, tasks=1, **{name: 1})


def test_a_setting_that_an_agent_takes_is_taken_and_none_is_no_setting() -> None:
    check_settings(["oracle", "chat:x"], {"temperature": 0.5})
    check_settings(["command:sh"], {"timeout": 5.0})
    check_settings(["oracle"], {"temperature": None, "max_cost": 2.0})
    with pytest.raises(UsageError, match="the option --model-header"):
        check_settings([lambda messages, tools: "x", "command:sh"], {"headers": {}})


PAGES = ({"nextCursor": "p2"}, {"next_cursor": "x"}, {"has_more": True}, {"page": 1, "pages": 3})
WHOLE = ({"nextCursor": None}, {"nextCursor": ""}, {"has_more": False}, {"page": 3, "pages": 3}, {})


@pytest.mark.parametrize("beside", [*PAGES, *WHOLE], ids=str)
def test_one_page_of_a_list_is_no_list(toolshift: Run, beside: dict[str, object]) -> None:
    listed = [{"name": "get_order", "description": "Next.", "inputSchema": {"type": "object"}}]
    Path("page.json").write_text(json.dumps({"tools": listed, **beside}))
    Path("whole.json").write_text(json.dumps(listed))
    cut = beside in PAGES
    assert toolshift("lock", "page.json")[0] == (2 if cut else 0)
    code, _, err = toolshift("change", "whole.json", "page.json")
    assert (code, "one page of a list" in err) == ((2, True) if cut else (0, False))


def test_grading_nothing_again_is_no_result(toolshift: Run) -> None:
    toolshift("run", *ONE, "--out", "run")
    Path("run/episodes.jsonl").write_text("")
    code, out, err = toolshift("regrade", "run")
    assert (code, out) == (2, "")
    assert "nothing was graded again: no episode has been run" in err


def test_a_run_without_episodes_is_said_beside_others(toolshift: Run) -> None:
    for name in ("first", "second"):
        toolshift("run", *ONE, "--out", name)
    Path("second/episodes.jsonl").write_text("")
    code, out, _ = toolshift("report", "first", "second", "--site", "site")
    assert code == 0
    assert "second: no episode has been run, so it is on no page." in out
    assert "first: no episode" not in out
