"""A world of the user's own, from annotated Python functions: clean, shifted, in a whole run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from running import Run

from toolshift.agents.planted import planted
from toolshift.api import evaluate
from toolshift.core.scene import Scene
from toolshift.core.shift import NotApplicable
from toolshift.episode.draw import make_scene
from toolshift.episode.episode import Episode
from toolshift.episode.grade import Grade, grade, regrade
from toolshift.episode.oracle import OracleAgent
from toolshift.interop.tools import from_mcp
from toolshift.runs.own_checking import check_tasks
from toolshift.shifts.registry import apply, shifts
from toolshift.worlds.names import OWN
from toolshift.worlds.own import OwnWorld, load
from toolshift.worlds.own.python import PythonTools

EXAMPLE = Path(__file__).parents[3] / "examples" / "own_tools"


@pytest.fixture
def shop() -> OwnWorld:
    return load(EXAMPLE / "tasks.yaml")


def scenes(world: OwnWorld) -> list[Scene]:
    return [
        make_scene(world, kind, n) for kind, count in world.counts.items() for n in range(count)
    ]


def played(scene: Scene, agent: str = "oracle") -> Grade:
    episode = Episode(scene)
    (OracleAgent() if agent == "oracle" else planted(agent)).play(episode)
    return grade(episode)


def called(scene: Scene, *calls: tuple[str, dict[str, Any]], answer: str = "") -> Grade:
    """The grade of these calls and this answer; a refusal where there is none."""
    episode = Episode(scene)
    for name, arguments in calls:
        episode.call(name, arguments)
    if answer:
        episode.answer(answer)
    else:
        episode.refuse("not_found")
    stored = regrade(scene, episode.steps, episode.end)
    assert stored == grade(episode)
    return stored


def test_tools_are_plain_tools_with_the_schemas_of_the_annotations(shop: OwnWorld) -> None:
    tools = {tool.name: tool for tool in shop.tools}
    assert list(tools) == ["find_customer", "get_order", "list_orders", "refund_order"]
    refund = tools["refund_order"]
    assert refund.effect == "write"
    assert [(p.name, p.required) for p in refund.params] == [("order_id", True), ("reason", False)]
    assert refund.params[1].schema["description"] == "Why, in the customer's words."
    assert tools["list_orders"].many
    told = {field.path[0]: field.type for field in tools["get_order"].returns}
    assert told == {
        "order_id": "string", "item": "string", "total_eur": "number", "status": "string"
    }  # fmt: skip
    raw = [dict(source.raw) for source in shop.toolbox.sources.values()]
    assert from_mcp(raw).hash == shop.toolbox.hash


def test_the_oracle_passes_every_task_clean_and_under_every_shift_that_applies(
    shop: OwnWorld,
) -> None:
    applied = set()
    for scene in scenes(shop):
        assert played(scene).passed
        for name in shifts():
            try:
                shifted = apply(scene, name, 2)
            except NotApplicable:
                continue
            verdict = played(shifted)
            assert verdict.passed, (scene.task.lineage, name, verdict.cause)
            applied.add(name)
    assert applied >= {
        "identity_erasure", "tool_name_noise", "parameter_rename", "format_drift", "redirect",
        "transient_error", "verification_change", "truncation", "query_paraphrase",
        "query_ambiguity", "split_tools", "fatal_error", "tool_gone",
    }  # fmt: skip
    assert not applied & {"unseen_domain", "merged_tools", "no_such_entity", "rule_update"}


def test_doing_nothing_or_refusing_passes_nothing(shop: OwnWorld) -> None:
    for scene in scenes(shop):
        assert not called(scene).passed
        assert not called(scene, answer="Done.").passed


def test_every_episode_has_a_state_of_its_own(shop: OwnWorld) -> None:
    scene = make_scene(shop, "refund", 1)
    for _ in range(2):  # the reference counts the refunds of the state
        episode = Episode(scene)
        text, _ = episode.call("refund_order", {"order_id": "O-1801"})
        assert "RF-1801-1" in text


def test_a_state_check_sees_what_was_done(shop: OwnWorld) -> None:
    scene = make_scene(shop, "refund", 0)
    right = ("refund_order", {"order_id": "O-1701", "reason": "customer asked"})
    wrong = ("refund_order", {"order_id": "O-1702"})
    assert not called(scene, wrong, answer="RF-1702-1").passed
    assert not called(scene, right, wrong, answer="RF-1701-1").passed
    assert not called(scene, ("refund_order", {"order_id": "O-1701"}), answer="none").passed
    assert called(scene, ("refund_order", {"order_id": "O-1701"}), answer="It is RF-1701-1").passed


def test_a_refusal_needs_the_lookup_first(shop: OwnWorld) -> None:
    scene = make_scene(shop, "status", 2)
    assert not called(scene).passed
    verdict = called(scene, ("get_order", {"order_id": "O-9999"}))
    assert verdict.passed
    assert verdict.right_reason


def test_what_is_not_applicable_is_said(shop: OwnWorld) -> None:
    found = check_tasks(shop)
    assert [task.state for task in found] == ["ok"] * 5
    assert "given" in found[0].not_applicable["unseen_domain"]
    assert found[0].shifts > 20


def remembers(messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> dict[str, Any]:
    """Knows the name and the argument of one tool by heart, as an agent with fixed prompts does."""
    last = messages[-1]
    if last["role"] == "tool" and "status" in last["content"]:
        return said("final_answer", answer=json.loads(last["content"])["status"])
    if last["role"] == "tool":
        return said("refuse", reason="tool_unavailable")
    return said("get_order", order_id="O-1702")


def reads(messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> dict[str, Any]:
    """Finds the tool by its description."""
    last = messages[-1]
    if last["role"] == "tool":
        return said("final_answer", answer=last["content"])
    shown = [t["function"] for t in tools if t["function"]["description"] == "Get one order."]
    return said(shown[0]["name"], order_id="O-1702")


def said(name: str, **arguments: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "function": function}]}


def test_a_callable_agent_that_memorises_fails_where_one_that_reads_passes(
    tmp_path: Path,
) -> None:
    shutil.copy(EXAMPLE / "shop_tools.py", tmp_path / "shop_tools.py")
    (tmp_path / "tasks.yaml").write_text(
        "world: lamp\ntools: {python: shop_tools}\ntasks:\n"
        "  - id: lamp\n    ask: What is the status of order O-1702?\n"
        "    calls: [{name: get_order, arguments: {order_id: O-1702}}]\n"
        "    check: {answer: shipped}\n"
    )
    report = evaluate(
        [remembers, reads],
        worlds=[str(tmp_path / "tasks.yaml")],
        shifts=["identity_erasure:3", "transient_error:1"],
        placebo=False,
    )
    memory, reader = report.agent("remembers"), report.agent("reads")
    assert (memory.clean.accuracy.estimate, reader.clean.accuracy.estimate) == (1, 1)
    tiers = {row.label: row for row in memory.tiers}
    assert list(tiers) == ["perception", "interaction"]
    assert tiers["perception"].accuracy.estimate == 0
    assert tiers["perception"].causes == {"memorised_name": 1}
    assert {row.label: row.accuracy.estimate for row in reader.tiers}["perception"] == 1


def test_a_run_is_resumed_and_its_folder_names_no_path(toolshift: Run, tmp_path: Path) -> None:
    path, out = str(EXAMPLE / "tasks.yaml"), tmp_path / "run"
    asked = ["run", "--world", path, "--agent", "memorises_names", "--agent", "oracle"]
    asked += ["--shift", "identity_erasure:2", "--shift", "unseen_domain", "--out", str(out)]
    asked += ["--json"]
    code, text, _ = toolshift(*asked, "--workers", "2")
    assert code == 0
    agents = {agent["name"]: agent for agent in json.loads(text)["agents"]}
    assert agents["oracle"]["clean"]["accuracy"]["estimate"] == 1
    assert agents["memorises_names"]["tiers"][0]["accuracy"]["estimate"] < 0.3
    assert toolshift(*asked)[1] == text
    for file in ("manifest.json", "plan.jsonl", "episodes.jsonl"):
        assert "examples" not in (out / file).read_text()
    world = load(path).name
    assert world in (out / "manifest.json").read_text()
    assert toolshift("regrade", str(out))[0] == 0
    code, text, _ = toolshift("check", path)
    assert (code, "0 failed" in text) == (0, True)
    code, text, _ = toolshift("show", f"{path}/refund/0", "--shift", "identity_erasure:3")
    assert (code, "mara@example.com" in text) == (0, True)


def test_another_process_finds_the_file_where_it_is_started(toolshift: Run, tmp_path: Path) -> None:
    out = tmp_path / "run"
    asked = ["--world", str(EXAMPLE / "tasks.yaml"), "--agent", "oracle", "--shift", "placebo"]
    assert toolshift("run", *asked, "--out", str(out))[0] == 0
    (world,) = json.loads((out / "manifest.json").read_text())["selection"]["worlds"]

    def shown(folder: Path) -> tuple[int, str]:
        command = "from toolshift.cli import main; main()"
        words = [sys.executable, "-c", command, "show", f"{world}/refund/0"]
        known = {name: value for name, value in os.environ.items() if name != OWN}
        done = subprocess.run(words, cwd=folder, env=known, capture_output=True, text=True)  # noqa: PLW1510
        return done.returncode, done.stdout + done.stderr

    code, said = shown(tmp_path)
    assert (code, f"{OWN}=my_tasks.yaml toolshift minimise RUN EPISODE" in said) == (2, True)
    code, said = shown(EXAMPLE)
    assert (code, "mara@example.com" in said) == (0, True), said
    (tmp_path / "noise.yml").write_text("- no world")
    (tmp_path / "other.yaml").write_text((EXAMPLE / "tasks.yaml").read_text())
    code, said = shown(tmp_path)  # the tools of the copy are not there
    assert (code, "other.yaml:2: tools.python" in said) == (2, True), said


def test_keys_that_are_numbers_are_texts_in_results_as_in_json() -> None:
    tools = PythonTools({"names": lambda: {1: "one", "more": {2: "two"}}}, None)
    found = tools.call("names", {})
    assert found.data == {"1": "one", "more": {"2": "two"}}
    assert [field.path for field in found.fields] == [("1",), ("more", "2")]
