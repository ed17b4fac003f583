"""Stored exchanges: what is sent once, what is never shared, and what survives."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean, variance
from typing import Any

import pytest
from msgspec.structs import replace
from running import Run
from serving import Answer, ScriptedServer, scripted_server

from toolshift.agents.answer_cache import FILE, STATELESS, Exchanges, drawing, kept_elsewhere, lent
from toolshift.agents.catalog import make_agent
from toolshift.core.errors import UsageError
from toolshift.core.message import Reply, Turn, Usage
from toolshift.runs.run_folder import RunFolder

TURN = Turn([{"role": "user", "content": "Hello"}], [])
USED = {"input_tokens": 10, "output_tokens": 2}
BODIES: dict[str, Any] = {
    "chat": lambda model: {
        "model": model,
        "choices": [{"message": {"role": "assistant", "content": "done"}}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 2},
    },
    "responses": lambda model: {
        "id": "r", "status": "completed", "model": model, "usage": USED,
        "output": [{"type": "message", "id": "m", "role": "assistant", "content": [
            {"type": "output_text", "text": "done", "annotations": []}]}],
    },
    "anthropic": lambda model: {
        "type": "message", "model": model, "stop_reason": "end_turn", "usage": USED,
        "content": [{"type": "text", "text": "done"}],
    },
    "gemini": lambda model: {
        "modelVersion": model,
        "candidates": [{"content": {"role": "model", "parts": [{"text": "done"}]},
                        "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 2},
    },
}  # fmt: skip
"""An answer in each dialect, of a model of this name."""


def named(dialect: str, model: str) -> Answer:
    body = json.dumps(BODIES[dialect](model)).encode()
    return lambda exchange: exchange.send(200, body)


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with scripted_server() as found:
        yield found


def asked(
    server: ScriptedServer, exchanges: Exchanges, model: str = "m-1", dialect: str = "chat",
    trials: int = 1, tasks: int = 2, arms: int = 3, **options: Any,
) -> tuple[int, list[Reply]]:  # fmt: skip
    """How many requests some episodes send, each of one turn, and their replies."""
    before = len(server.requests)
    server.script = [named(dialect, model) for _ in range(1000)]
    agent: Any = make_agent(f"{dialect}:any", base_url=server.url, **options)
    replies = []
    with lent(exchanges, [agent]):
        for task in range(tasks):
            for trial in range(trials):
                for _ in range(arms):
                    with drawing(f"task {task}", trial):
                        replies.append(agent.reply(TURN))
    agent.close()
    return len(server.requests) - before, replies


@pytest.mark.parametrize("dialect", BODIES)
def test_every_door_sends_a_request_once(
    dialect: str, server: ScriptedServer, tmp_path: Path
) -> None:
    first = Exchanges(tmp_path)
    assert asked(server, first, dialect=dialect, tasks=3)[0] == 3
    again = Exchanges(tmp_path)
    sent, replies = asked(server, again, dialect=dialect, tasks=3)
    assert sent == 1, "only the first, which shows who answers"
    assert {reply.text for reply in replies} == {"done"}
    saved = Usage(recalled=1, saved_input_tokens=10, saved_output_tokens=2)
    assert [reply.usage for reply in replies[1:]] == [saved] * 8
    assert replies[0].usage == Usage(10, 2, requests=1)
    figures = again.figures
    assert (figures.asked, figures.recalled, figures.saved_input_tokens) == (1, 8, 80)


@pytest.mark.parametrize("dialect", BODIES)
def test_no_answer_of_a_model_that_has_changed(
    dialect: str, server: ScriptedServer, tmp_path: Path
) -> None:
    asked(server, Exchanges(tmp_path), "m-1", dialect, tasks=3)
    later = Exchanges(tmp_path)
    assert asked(server, later, "m-2", dialect, tasks=3)[0] == 3
    assert "the model has changed" in later.figures.text
    assert later.figures.other_model == 2
    assert asked(server, Exchanges(tmp_path), "m-2", dialect, tasks=3)[0] == 1


def test_trials_and_tasks_share_nothing(server: ScriptedServer) -> None:
    assert asked(server, Exchanges(), trials=4, tasks=3)[0] == 12


def test_settings_and_addresses_share_nothing(server: ScriptedServer, tmp_path: Path) -> None:
    asked(server, Exchanges(tmp_path))
    for other in ({"temperature": 0.5}, {"max_tokens": 9}, {"headers": {"x-beta": "1"}}):
        assert asked(server, Exchanges(tmp_path), **other)[0] == 2, other
    assert asked(server, Exchanges(tmp_path), api_key="another")[0] == 1


def test_fresh_asks_anew_and_off_shares_nothing(server: ScriptedServer, tmp_path: Path) -> None:
    asked(server, Exchanges(tmp_path), tasks=3)
    assert asked(server, Exchanges(tmp_path, fresh=True), tasks=3)[0] == 3
    assert asked(server, Exchanges(tmp_path), tasks=3)[0] == 1
    assert asked(server, Exchanges("off"))[0] == 6
    with pytest.raises(UsageError, match="--cache FOLDER"):
        Exchanges(fresh=True)


def test_an_episode_that_repeats_itself_draws_again(server: ScriptedServer) -> None:
    agent: Any = make_agent("chat:any", base_url=server.url)
    with lent(Exchanges(), [agent]):
        for _ in range(2):
            with drawing("task", 0):
                replies = [agent.reply(TURN) for _ in range(3)]
                assert [reply.usage.recalled for reply in replies] in ([0, 0, 0], [1, 1, 1])
        agent.reply(TURN)  # of no episode
    assert len(server.requests) == 4


@pytest.mark.parametrize("field", ["previous_response_id", "conversation", "container", "x_new"])
def test_what_may_be_kept_at_the_provider_is_never_stored(
    field: str, server: ScriptedServer
) -> None:
    exchanges = Exchanges()
    assert asked(server, exchanges, options={field: "1"})[0] == 6
    assert field in exchanges.notes[0]
    assert field in kept_elsewhere({field: "1"})
    assert asked(server, Exchanges(), options={"seed": 1, field: None})[0] == 2
    assert not kept_elsewhere(dict.fromkeys(STATELESS, 1))


def test_failures_are_not_stored(server: ScriptedServer, tmp_path: Path) -> None:
    withheld = {"choices": [{"message": {"content": "no"}, "finish_reason": "content_filter"}]}
    agent: Any = make_agent("chat:any", base_url=server.url, retries=0)
    with lent(Exchanges(tmp_path), [agent]):
        server.script = [
            named("chat", "m"),
            lambda it: it.send(500, b""),
            lambda it: it.send(200, json.dumps(withheld).encode()),
            named("chat", "m"),
        ]
        failed = []
        for task in ("other task", "task", "task", "task", "task"):
            with drawing(task, 0):
                failed.append(bool(agent.reply(TURN).failure))
    assert failed == [False, True, True, False, False]
    assert len(server.requests) == 4


def test_who_asks_the_same_at_the_same_time_waits() -> None:
    store, sent = Exchanges(), []
    barrier = threading.Barrier(16)

    def episode() -> None:
        barrier.wait()
        with drawing("task", 0), store.exchange("who", b"request") as exchange:
            if exchange.answer is None:
                time.sleep(0.02)
                sent.append(1)
                exchange.keep(b"answer", "m")

    with store.opened():
        threads = [threading.Thread(target=episode) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(sent) == 1
    assert not store._flights


CHILD = """
import sys, time
from toolshift.agents.answer_cache import Exchanges, drawing
store = Exchanges(sys.argv[1])
with store.opened(), drawing("task", 0):
    with store.exchange("who", b"first") as exchange:
        exchange.keep(b"x", "m")
    print("ready", flush=True)
    sys.stdin.readline()
    with store.exchange("who", b"second") as exchange:
        print("asks" if exchange.answer is None else "recalls", flush=True)
        time.sleep(0.3)
        exchange.keep(b"y", "m")
    if sys.argv[2] == "stays":
        time.sleep(60)
"""


def test_processes_share_a_folder_and_a_killed_one_loses_nothing(tmp_path: Path) -> None:
    started = [
        subprocess.Popen(
            [sys.executable, "-c", CHILD, str(tmp_path), how],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for how in ("stays", "ends")
    ]
    for each in started:
        assert each.stdout
        assert each.stdout.readline() == "ready\n"
    for each in started:
        assert each.stdin
        each.stdin.write("go\n")
        each.stdin.flush()
    said = sorted(each.stdout.readline().strip() for each in started if each.stdout)
    if os.name == "posix":
        assert said == ["asks", "recalls"]
    started[1].communicate()
    time.sleep(0.4)
    started[0].send_signal(signal.SIGKILL)
    started[0].communicate()
    store = Exchanges(tmp_path)
    with store.opened(), drawing("task", 0):
        with store.exchange("who", b"new") as exchange:
            exchange.keep(b"z", "m")
        with store.exchange("who", b"second") as exchange:
            assert exchange.answer == b"y"


def test_a_file_that_is_no_cache_is_said(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("not a database, but long enough to be looked at as one" * 9)
    with pytest.raises(UsageError, match="cannot be used"), Exchanges(tmp_path).opened():
        pass
    (tmp_path / FILE).unlink()
    base = sqlite3.connect(tmp_path / FILE)
    base.execute("PRAGMA user_version=99")
    base.close()
    with pytest.raises(UsageError, match="newer"), Exchanges(tmp_path).opened():
        pass
    with pytest.raises(UsageError, match="--cache"), Exchanges(tmp_path / FILE / "x").opened():
        pass


def test_shared_draws_leave_estimates_unbiased_and_narrow_them() -> None:
    """Episodes of three turns; the shifted ones part at the second, and are worse from there on."""
    rng = random.Random(7)
    found: dict[bool, list[float]] = {True: [], False: []}

    def passed(turns: list[tuple[bytes, float]], store: Exchanges, pair: int) -> bool:
        with drawing("task", pair):
            for request, chance in turns:
                with store.exchange("who", request) as exchange:
                    drawn = exchange.answer or (b"+" if rng.random() < chance else b"-")
                    exchange.keep(drawn, "m")
                if drawn == b"-":
                    return False
        return True

    for shares in found:
        store = Exchanges()
        with store.opened():
            for pair in range(2000):
                clean = [(b"1", 0.6), (b"2", 0.9), (b"3", 0.9)]
                shifted = [clean[0], (b"2 shifted", 0.7), (b"3 shifted", 0.9)]
                before = passed(clean, store, pair)
                after = passed(shifted, store, pair if shares else pair + 2000)
                found[shares].append(before - after)
    truth = 0.6 * 0.9 * 0.9 - 0.6 * 0.7 * 0.9
    for drops in found.values():
        assert abs(fmean(drops) - truth) < 3.5 * (variance(drops) / len(drops)) ** 0.5
    assert variance(found[True]) < 0.75 * variance(found[False])


def test_no_count_is_lost_between_threads() -> None:
    exchanges = Exchanges()
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        counts = [
            threading.Thread(
                target=lambda: [exchanges.count(Usage(recalled=1)) for _ in range(500)]
            )
            for _ in range(8)
        ]
        for one in counts:
            one.start()
        for one in counts:
            one.join()
    finally:
        sys.setswitchinterval(before)
    assert exchanges.figures.recalled == 4000


SMALL = ("run", "--tasks", "3", "--world", "poi", "--shift", "fatal_error", "--no-placebo")


def test_a_run_says_what_it_has_asked_and_a_later_one_asks_little(
    toolshift: Run, server: ScriptedServer
) -> None:
    chat = (*SMALL, "--agent", "chat:any", "--base-url", server.url, "--cache", "kept")
    prices = ("--price-in", "10", "--price-out", "10")
    server.script = [named("chat", "m") for _ in range(1000)]
    code, out, err = toolshift(*chat, "--out", "a", *prices)
    assert code == 0, err
    assert len(server.requests) == 3
    assert out.splitlines()[-1].startswith("Requests: 6; 3 asked, 3 from the cache (30 tokens in")
    code, out, err = toolshift(*chat, "--out", "b", "--json", *prices)
    assert code == 0, err
    assert len(server.requests) == 4
    figures = json.loads(out)["requests"]["figures"]
    assert (figures["asked"], figures["recalled"]) == (1, 5)
    assert figures["saved_cost"] == pytest.approx(5 * 12 * 10 / 1e6)
    first, second = (
        [json.loads(line) for line in Path(name, "episodes.jsonl").read_text().splitlines()]
        for name in "ab"
    )
    assert [one["grade"] for one in first] == [one["grade"] for one in second]
    assert sum(one["usage"].get("cost", 0) for one in second) == pytest.approx(12 * 10 / 1e6)
    assert sum(step.get("recalled", False) for one in second for step in one["steps"]) == 5
    marked = next(one["episode"] for one in second if one["steps"][0].get("recalled"))
    assert "(a stored answer)" in toolshift("trace", "b", marked)[1]
    code, out, _ = toolshift(*SMALL, "--agent", "oracle", "--out", "c")
    assert "Requests:" not in out
    assert "recalled" not in Path("c/episodes.jsonl").read_text()


COUNTED = """
import json
asked = []


def mine(messages, tools):
    asked.append(1)
    with open("asked", "a") as file:
        file.write("x")
    if len(messages) > 4:
        return {"role": "assistant", "content": "I give up.", "thoughts": "Hm."}
    function = {"name": "find_place", "arguments": json.dumps({"name": "a"}, indent=1)}
    call = {"id": f"c{len(messages)}", "function": function, "signature": "s"}
    return {"role": "assistant", "content": None, "thoughts": "x", "tool_calls": [call]}
"""


def test_own_functions_are_stored_where_that_is_asked_for(toolshift: Run) -> None:
    Path("counted.py").write_text(COUNTED)
    own = (*SMALL, "--agent", "counted:mine")
    times, traces = [], []
    stored = ("--cache", "kept", "--cache-own")
    for number, more in enumerate(((), ("--cache-own",), stored, stored)):
        Path("asked").write_text("")
        code, _, err = toolshift(*own, *more, "--out", f"out{number}")
        assert code == 0, err
        times.append(len(Path("asked").read_text()))
        lines = Path(f"out{number}/episodes.jsonl").read_text().splitlines()
        episodes = [json.loads(line) for line in lines]
        for one in episodes:
            one.pop("usage", None)
            one["steps"] = [{**step, "recalled": False} for step in one["steps"]]
        traces.append(episodes)
    assert times[0] > times[1] == times[2] > times[3] == 1
    assert traces[0] == traces[1] == traces[2] == traces[3]
    code, _, err = toolshift(*SMALL, "--agent", "oracle", "--cache-own", "--out", "o")
    assert code == 2
    assert "--cache-own works only with" in err
    code, _, err = toolshift(*own, "--cache", "kept", "--out", "o")
    assert code == 2
    assert "--cache works only with models" in err


def test_a_gate_of_the_same_agent_asks_little(toolshift: Run, server: ScriptedServer) -> None:
    server.script = [named("chat", "m") for _ in range(1000)]
    chat = ("--agent", "chat:any", "--base-url", server.url, "--cache", "kept")
    code, _, err = toolshift(*SMALL, *chat, "--out", "a")
    assert code == 0, err
    before = RunFolder.read(Path("a"))  # a gate against what passes nothing asks nothing
    passing = [replace(r, grade=replace(r.grade, passed=True)) for r in before.records()]
    before.rewrite(passing)
    code, out, err = toolshift("gate", *chat, "--baseline", "a", "--margin", "50", "--out", "b")
    assert "1 asked, 5 from the cache" in out.splitlines()[-1], out + err
    code, _, err = toolshift("gate", "b", "--baseline", "a", "--margin", "50", "--cache", "kept")
    assert code == 2
    assert "--cache" in err
