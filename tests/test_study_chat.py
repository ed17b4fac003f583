"""A study over an endpoint that misbehaves: retried, counted as infrastructure, nothing lost."""

from __future__ import annotations

import json
from pathlib import Path

from running import Run
from serving import body, good, half, hang_up, scripted_server, status

SMALL = ("run", "--tasks", "4", "--shift", "fatal_error", "--out", "out", "--agent", "chat:any")


def test_what_can_be_retried_is_retried(toolshift: Run) -> None:
    with scripted_server() as server:
        server.script = [status(500), good(), status(429), body(b"?"), half, hang_up]
        code, out, err = toolshift(*SMALL, "--base-url", server.url)
    assert code == 0, err
    assert "0 infrastructure errors" in out
    assert len(server.requests) == 12 + 5


def test_what_goes_on_failing_is_infrastructure_and_never_scored(toolshift: Run) -> None:
    with scripted_server() as server:
        server.script = [good(), *[status(500)] * 100]
        code, out, err = toolshift(*SMALL, "--base-url", server.url, "--retries", "0")
    assert code == 0, err
    assert "11 infrastructure errors" in out
    assert "11 episodes void" in out
    report = json.loads(Path("out/report.json").read_text())
    assert report["agents"][0]["everything"]["episodes"] == 12
    assert list(report["agents"][0]["everything"]["causes"]) != ["infrastructure"]


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
        assert "--out out to go on" in err
        code, _, err = toolshift(*paid, "--max-cost", "0.5")
        assert code == 2
        assert "is spent in out" in err
        kept = len(Path("out/episodes.jsonl").read_text().splitlines())
        assert 0 < kept < 12
        code, out, err = toolshift(*paid, "--max-cost", "90")
        assert code == 0, err
    assert "12 episodes" in out
    lines = Path("out/episodes.jsonl").read_text().splitlines()
    names = [json.loads(line)["episode"] for line in lines]
    assert len(set(names)) == len(names) == 12
    assert "$" in out
