"""A study over an endpoint that misbehaves: retried, counted as infrastructure, nothing lost."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from running import Run
from serving import body, good, half, hang_up, scripted_server, status

from toolshift.agents.chat import ChatAgent

SMALL = ("run", "--tasks", "4", "--shift", "fatal_error", "--out", "out", "--agent", "chat:any",
         "--cache", "off")  # fmt: skip


def test_what_can_be_retried_is_retried(toolshift: Run) -> None:
    with scripted_server() as server:
        server.script = [status(500), good(), status(429), body(b"?"), half, hang_up]
        code, out, err = toolshift(*SMALL, "--base-url", server.url)
    assert code == 0, err
    out = toolshift("report", "out", "--details", "--no-html")[1]
    assert " 0 infrastructure errors" in out
    assert len(server.requests) == 12 + 5


def test_what_goes_on_failing_is_infrastructure_and_never_scored(toolshift: Run) -> None:
    with scripted_server() as server:
        server.script = [good(), *[status(500)] * 100]
        code, out, err = toolshift(*SMALL, "--base-url", server.url, "--retries", "0")
    assert code == 1  # of the shifted scenes nothing was measured
    assert "Nothing was measured for any under fatal_error" in err
    out = toolshift("report", "out", "--details", "--no-html")[1]
    assert "11 infrastructure errors" in out
    assert "11 episodes void" in out
    report = json.loads(Path("out/report.json").read_text())
    assert report["agents"][0]["everything"]["episodes"] == 12
    assert list(report["agents"][0]["everything"]["causes"]) != ["infrastructure"]


def test_a_run_that_reached_nothing_has_not_succeeded(toolshift: Run) -> None:
    with scripted_server() as server:
        server.script = [status(500)] * 100
        code, out, err = toolshift(*SMALL, "--base-url", server.url, "--retries", "0")
    assert code == 1
    out = toolshift("report", "out", "--details", "--no-html")[1]
    assert "12 infrastructure errors" in out
    assert "Nothing was measured for any" in err


def test_a_wrong_key_is_a_usage_error_and_max_cost_stops_resumably(toolshift: Run) -> None:
    with scripted_server() as server:
        server.script = [status(401)]
        code, _, err = toolshift(*SMALL, "--base-url", server.url)
        assert code == 2
        assert "HTTP 401" in err
        prices = ("--price-in", "100", "--price-out", "100")
        paid = (*SMALL, "--base-url", server.url, *prices, "--concurrency", "1")
        code, _, err = toolshift(*paid, "--max-cost", "0.9")
        assert code == 2
        assert "max_cost" in err
        assert "--out out to resume" in err
        code, _, err = toolshift(*paid, "--max-cost", "0.5")
        assert code == 2
        assert "of max_cost $0.5000 is spent" in err
        kept = len(Path("out/episodes.jsonl").read_text().splitlines())
        assert 0 < kept < 12
        code, out, err = toolshift(*paid, "--max-cost", "90")
        assert code == 0, err
    assert "12 episodes" in out
    lines = Path("out/episodes.jsonl").read_text().splitlines()
    names = [json.loads(line)["episode"] for line in lines]
    assert len(set(names)) == len(names) == 12
    out = toolshift("report", "out", "--details", "--no-html")[1]
    assert "$" in out


PRICES = ("--price-in", "100", "--price-out", "100", "--concurrency", "1")


def spent() -> float:
    return sum(json.loads(Path("out/spent.json").read_text()).values())


def test_one_purse_pays_for_all_agents_and_resumptions(toolshift: Run) -> None:
    with scripted_server() as server:
        both = (*SMALL, "--agent", "chat:other", "--base-url", server.url, *PRICES)
        code, _, err = toolshift(*both, "--max-cost", "90")
        assert code == 0, err
        lines = Path("out/episodes.jsonl").read_text().splitlines()
        paid = [json.loads(line)["usage"]["cost"] for line in lines]
        assert spent() == pytest.approx(sum(paid))
        limit = f"{0.75 * spent():.6f}"
        shutil.rmtree("out")
        code, _, err = toolshift(*both, "--max-cost", limit)
        assert code == 2
        assert spent() <= float(limit)


def test_money_for_dropped_episodes_is_spent_too(toolshift: Run) -> None:
    with scripted_server() as server:
        words = (*SMALL, "--base-url", server.url, *PRICES, "--max-cost", "2")
        server.script = [good(), status(401)]
        assert toolshift(*words)[0] == 2
        before = spent()
        Path("out/episodes.jsonl").write_bytes(b"")  # as if it had been killed in mid-episode
        server.script = [status(401)]
        assert toolshift(*words)[0] == 2
        assert spent() == before > 0


def test_settings_are_kept_without_secrets_and_compared(
    toolshift: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret-0123456789")
    with scripted_server() as server:
        words = (*SMALL, "--base-url", f"{server.url}?sig=hidden", "--max-tokens", "99")
        code, _, err = toolshift(*words)
        assert code == 0, err
        about = Path("out/manifest.json").read_text()
        settings = json.loads(about)["agents"][0]["settings"]
        assert settings["base_url"] == server.url
        assert (settings["temperature"], settings["max_tokens"]) == (0, 99)
        assert settings["protocol"] == "native"
        assert "hidden" not in about
        assert "secret" not in about
        code, _, err = toolshift(*words, "--temperature", "0.7")
        assert code == 2
        assert "changed: any: temperature" in err


def test_options_are_kept_without_secrets() -> None:
    options = {"seed": 7, "api_key": "hush", "metadata": {"auth": "hush", "team": "a"}}
    agent = ChatAgent("any", "http://127.0.0.1:1/v1", options=options)
    assert agent.settings["seed"] == 7
    assert agent.settings["metadata"]["team"] == "a"
    assert "hush" not in str(agent.settings)
