"""`toolshift retrain`: the path in small, with a model of no evidence, and every decision."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from running import Run
from shifts.test_release import edited, poi, rename, rename_param, side

from toolshift.api import evaluate
from toolshift.core.errors import UsageError
from toolshift.measure.statistics import Interval
from toolshift.retrain.decision import decide, not_needed
from toolshift.retrain.retrain import ASKED, Asked, _check_asked, _keep
from toolshift.runs.run_folder import RunFolder
from toolshift.runs.suite import Selection
from toolshift.shifts.files import FILES
from toolshift.shifts.release.file import FORMAT, ShiftFile
from toolshift.shifts.release.mapping import Answers
from toolshift.shifts.release.resolve import settle
from toolshift.train.presets import preset


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> ShiftFile:
    folder = tmp_path_factory.mktemp("lists")
    before = side(folder, "old.json", poi())
    after = side(folder, "new.json", edited(rename("find_place", "v2_find_place")))
    answers = settle(before, after, Answers(), accept=True).answers
    return ShiftFile(FORMAT, "release", before, after, answers)


@pytest.fixture
def runs(release: ShiftFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Runs of scripted agents, clean and under the release."""
    monkeypatch.setenv(FILES, "")
    file = tmp_path / "release.json"
    file.write_bytes(release.encode())

    def run(agent: str) -> RunFolder:
        out = tmp_path / agent
        evaluate(
            agent, worlds="poi", shifts=[str(file)], tasks=24, placebo=False, out=out
        )  # fmt: skip
        return RunFolder.read(out)

    return run


def test_a_model_that_wins_and_loses_nothing_is_kept(runs, release):
    found = decide(runs("memorises_names"), runs("oracle"), release.stored_name, 15.0)
    assert found.outcome == "keep"
    assert found.gain is not None
    assert found.gain.change.low > 0
    assert [family.label for family in found.guarded] == ["clean"]
    assert found.sentence.startswith("keep: +")


def test_a_model_that_does_not_help_is_rejected(runs, release):
    found = decide(runs("oracle"), runs("memorises_names"), release.stored_name, 15.0)
    assert found.outcome == "reject"
    assert "does not help" in found.sentence


def test_what_wins_and_forgets_the_old_tools_is_rejected(runs, release):
    old, new = runs("memorises_names"), runs("oracle")
    lines = [json.loads(line) for line in (new.path / "episodes.jsonl").read_text().splitlines()]
    clean = {cell.id for cell in new.plan.cells if not cell.shifts}
    for line in lines:
        if line["cell"] in clean:
            line["grade"] = {**line["grade"], "passed": False}
    (new.path / "episodes.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = decide(old, RunFolder.read(new.path), release.stored_name, 15.0)
    assert found.outcome == "reject"
    assert "on clean, worse by more than 15" in found.sentence


def test_a_margin_that_24_tasks_cannot_show_is_undecided(runs, release):
    found = decide(runs("memorises_names"), runs("oracle"), release.stored_name, 1.0)
    assert found.outcome == "undecided"
    assert "more tasks would decide" in found.sentence


@pytest.mark.parametrize(
    ("high", "clean", "needed"), [(0.04, 0.9, False), (0.06, 0.9, True), (0.04, 0.0, True)]
)
def test_a_release_that_costs_less_than_the_margin_is_not_trained_on(high, clean, needed):
    cost = Interval(0.01, -0.02, high, "exact", 40)
    assert (not_needed(cost, 5.0, clean) is None) == needed


def test_paths_are_no_part_of_the_question(release):
    asked = Asked("release@1", preset("smoke"), 0.5, 24, Selection(), (), 5.0)
    assert msgspec.json.decode(msgspec.json.encode(asked), type=Asked) == asked
    assert asked.mix(Path("a/release.json")).alpha == 0.5


def adapted(folder: Path, weights: bytes) -> Asked:
    """A question that starts from an adapter in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "adapter_model.safetensors").write_bytes(weights)
    settings = msgspec.structs.replace(preset("smoke"), full=False, adapter=str(folder))
    return Asked("release@1", settings, 0.5, 24, Selection(), (), 5.0)


def test_a_folder_says_no_path_and_knows_the_adapter_again_where_it_was_moved(tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    _keep(adapted(tmp_path / "one" / "mine", b"1"), out)
    assert str(tmp_path) not in (out / ASKED).read_text()
    _check_asked(adapted(tmp_path / "two" / "mine", b"1"), out)
    with pytest.raises(UsageError, match="another weights_sha256"):
        _check_asked(adapted(tmp_path / "three" / "mine", b"2"), out)
    with pytest.raises(UsageError, match=r"another adapter \(mine, not yours\)"):
        _check_asked(adapted(tmp_path / "yours", b"1"), out)


def test_a_folder_of_before_whose_question_has_whole_paths_still_goes_on(tmp_path):
    asked = adapted(tmp_path / "mine", b"1")
    (tmp_path / ASKED).write_bytes(msgspec.json.encode(asked))
    _check_asked(asked, tmp_path)
    with pytest.raises(UsageError, match="another adapter"):
        _check_asked(adapted(tmp_path / "yours", b"1"), tmp_path)


# -- the command ---------------------------------------------------------------------------------

ARGS = ("--preset", "smoke", "--steps", "2", "--count", "6", "--tasks", "2", "--kind", "listing")


@pytest.mark.model
def test_the_whole_path_and_again(toolshift: Run, monkeypatch):
    monkeypatch.setenv(FILES, "")
    Path("old.json").write_text(json.dumps(poi()))
    Path("new.json").write_text(json.dumps(edited(rename("search_places", "v2_search_places"))))
    assert toolshift("lock", "old.json")[0] == 0
    words = ("retrain", "toolshift.lock", "new.json", *ARGS)
    code, said, errors = toolshift(*words, "--margin", "99", "--out", "out")
    assert (code, "not needed" in said) == (3, False), errors  # it passes nothing, so loses nothing
    code, said, errors = toolshift(*words, "--out", "out")
    assert (code, "started with another margin (99.0, not 5.0)" in errors) == (2, True)
    words = (*words, "--out", "again")
    code, said, errors = toolshift(*words)
    assert code == 3, errors
    assert "training on 6 trajectories" in errors
    assert "Decision undecided" in said
    record = json.loads(Path("again/decision.json").read_text())
    assert record["outcome"] == "undecided"
    trained = json.loads(Path("again/model/training.json").read_text())
    assert trained["data"]["release"].startswith("release@")
    assert trained["data"]["mix"]["shifts"] == [trained["data"]["release"]]
    here = str(Path.cwd())
    kept = [file for file in Path("again").rglob("*.json*") if here in file.read_text()]
    assert not kept, "these have the path of the folder"
    code, again, errors = toolshift(*words)
    assert (code, again) == (3, said)
    assert "training on" not in errors
    assert "measuring" not in errors


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("toolshift.lock",), "name the current tools after toolshift.lock"),
        (("toolshift.lock", "old.json"), "nothing to learn"),
        (("toolshift.lock", "new.json", "--alpha", "0"), "--alpha 0"),
        (("toolshift.lock", "new.json", "--margin", "0.05"), "in points of accuracy"),
        (("toolshift.lock", "new.json", "--tasks", "0"), "--tasks 0"),
        (("gone.json",), "cannot be read"),
    ],
)
def test_bad_input(words, said, toolshift: Run, monkeypatch):
    monkeypatch.setenv(FILES, "")
    Path("old.json").write_text(json.dumps(poi()))
    Path("new.json").write_text(json.dumps(edited(rename("find_place", "v2_find_place"))))
    toolshift("lock", "old.json")
    code, _, errors = toolshift("retrain", *words, "--out", "out")
    assert (code, said in errors) == (2, True), errors


def test_a_command_that_was_mistaken_leaves_the_folder_free(toolshift: Run, monkeypatch):
    monkeypatch.setenv(FILES, "")
    Path("old.json").write_text(json.dumps(poi()))
    Path("new.json").write_text(json.dumps(edited(rename("search_places", "v2_search_places"))))
    toolshift("lock", "old.json")
    words = ("retrain", "toolshift.lock", "new.json", *ARGS, "--out", "out")
    for mistaken, why in (("--world", "unknown world 'nope'"), ("--guard", "'nope'")):
        code, _, errors = toolshift(*words, mistaken, "nope")
        assert (code, why in errors) == (2, True), errors
        assert not Path("out", ASKED).exists()
    code, _, errors = toolshift(*words[:-1], "old.json")
    assert (code, "old.json is a file: name a folder" in errors) == (2, True), errors


def test_all_that_is_taken_as_likeliest_stands_in_one_line(toolshift: Run, monkeypatch):
    monkeypatch.setenv(FILES, "")
    moved = edited(
        rename_param("find_place", "city", "town"),
        rename_param("get_hours", "day", "weekday"),
        rename("find_place", "locate_venue"),
        rename("get_hours", "opening_times"),
    )
    Path("old.json").write_text(json.dumps(poi()))
    gone = moved.pop()["function"]["name"]
    Path("new.json").write_text(json.dumps(moved))
    toolshift("lock", "old.json")
    code, _, errors = toolshift(
        "retrain", "toolshift.lock", "new.json", "--alpha", "0", "--out", "o"
    )
    assert (code, errors.count("Most likely matches")) == (2, 1), errors
    flat = " ".join(errors.split())
    assert "Most likely matches, used here: renamed.find_place = locate_venue, params." in flat
    assert (
        "tasks that need an answer are left out: renamed.get_hours (perhaps opening_times" in flat
    )
    assert f"Treated as removed, because no successor was found: {gone}." in flat


DESK = '''
def get_ticket(ticket_id: str) -> dict:
    """Looks up a ticket.

    Args:
        ticket_id: Identifier of the ticket.
    """
    return {"ticket_id": ticket_id, "owner": {"T-31": "Ilse", "T-32": "Omar"}[ticket_id]}
'''
TASKS = """
world: help_desk
tools: {python: desk_of_retrain}
writes: []
tasks:
  - {id: a, ask: "Who owns ticket T-31?", calls: [{name: get_ticket, arguments: {ticket_id: T-31}}],
     check: {answer: Ilse}}
  - {id: b, ask: "Who owns ticket T-32?", calls: [{name: get_ticket, arguments: {ticket_id: T-32}}],
     check: {answer: Omar}}
"""


def _own_files() -> None:
    """A world of one's own, its tools before and after, and conversations with them."""
    Path("desk_of_retrain.py").write_text(DESK)
    Path("tasks.yaml").write_text(TASKS)
    schema = {
        "type": "object",
        "properties": {"ticket_id": {"type": "string"}},
        "required": ["ticket_id"],
    }
    old = {"name": "get_ticket", "description": "Looks up a ticket.", "inputSchema": schema}
    new = {**old, "name": "fetch_ticket"}
    for name, tool in (("old.json", old), ("new.json", new)):
        Path(name).write_text(json.dumps([tool]))
    function = {key: old[key] for key in ("name", "description")} | {"parameters": schema}
    rows = []
    for ticket, owner in (("T-31", "Ilse"), ("T-32", "Omar")) * 2:
        call = {"name": "get_ticket", "arguments": json.dumps({"ticket_id": ticket})}
        rows.append(
            {
                "messages": [
                    {"role": "user", "content": f"Who owns ticket {ticket}?"},
                    {
                        "role": "assistant",
                        "content": "",
                        "tool_calls": [{"id": "c", "type": "function", "function": call}],
                    },
                    {"role": "tool", "tool_call_id": "c", "content": json.dumps({"owner": owner})},
                    {"role": "assistant", "content": owner},
                ],
                "tools": [{"type": "function", "function": function}],
                "note": len(rows),
            }
        )
    Path("mine.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.model
def test_own_conversations_are_trained_on_and_the_own_world_is_measured(
    toolshift: Run, monkeypatch
):
    monkeypatch.setenv(FILES, "")
    _own_files()
    answers = ("--mapping", "map.toml")
    Path("map.toml").write_text('renamed = {get_ticket = "fetch_ticket"}\n')
    made = toolshift("shift", "from-diff", "old.json", "new.json", *answers, "--out", "r.json")
    assert made[0] == 0, made
    words = ("retrain", "r.json", "--data", "mine.jsonl", "--world", "tasks.yaml", "--alpha", "1")
    small = ("--preset", "smoke", "--steps", "2", "--tasks", "2", "--out", "out", "--always")
    code, said, errors = toolshift(*words, *small)
    assert code in (1, 3), (said, errors)
    assert "training on 4 conversations of mine.jsonl, 4 with the new tools" in errors
    trained = json.loads(Path("out/model/training.json").read_text())["data"]
    assert trained["file"] == "mine.jsonl"
    assert trained["shifted"] == 4
    worlds = {cell.world for cell in RunFolder.read(Path("out/after")).plan.cells}
    assert {name.partition("@")[0] for name in worlds} == {"help_desk"}
    Path("mine.jsonl").write_text(Path("mine.jsonl").read_text() * 2)
    code, said, errors = toolshift(*words, *small)
    assert (code, "started with another data_sha256" in errors) == (2, True)


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ((), "give their file with --world"),
        (("--world", "tasks.yaml", "--count", "5"), "--count is for trajectories"),
        (("--world", "tasks.yaml", "--data", "nowhere.jsonl"), "nowhere.jsonl is not there"),
    ],
)
def test_what_does_not_go_with_own_conversations(
    more: tuple[str, ...], sentence: str, toolshift: Run, release: ShiftFile, monkeypatch
):
    monkeypatch.setenv(FILES, "")
    Path("r.json").write_bytes(release.encode())
    Path("mine.jsonl").write_text("{}\n")
    code, _, said = toolshift("retrain", "r.json", "--data", "mine.jsonl", *more, "--out", "out")
    assert (code, sentence in said) == (2, True), said
