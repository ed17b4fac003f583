"""DAgger: the oracle goes on from where a model has failed, and only the oracle is learned."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

pytest.importorskip("torch")
pytest.importorskip("trl")

from toolshift_lab.dagger import MAX_REPEATED, Round, act, corrected, train
from toolshift_lab.job import Job

from toolshift.core.calls import ToolCall
from toolshift.core.errors import UsageError
from toolshift.core.message import FINAL_ANSWER, REFUSE, Reply
from toolshift.core.scene import Applied, Scene
from toolshift.episode.draw import make_scene
from toolshift.lm.checkpoint import training_record
from toolshift.shifts.registry import compose
from toolshift.train.presets import preset
from toolshift.train.scenes import Mix
from toolshift.worlds.registry import find_world


def scene(kind: str, *stack: tuple[str, int]) -> Scene:
    clean = make_scene(find_world("poi"), kind, 3, pool="train")
    return compose(clean, [Applied(*one) for one in stack])


def call(name: str, /, **arguments: object) -> Reply:
    return Reply(calls=(ToolCall(name, arguments),))


def rehearsed(played: Scene) -> list[Reply]:
    """What the oracle does in a scene, as replies."""
    calls = [call(step.name, **step.given) for step in played.calls]
    return [*calls, call(FINAL_ANSWER, answer=played.rehearsal[-1].said)]


def turns(row: dict) -> list[tuple[str, int]]:
    """The calls of a row, and whether each is learned."""
    said = [m for m in row["messages"] if m["role"] == "assistant"]
    return [(m["tool_calls"][0]["function"]["name"], m.get("weight", 1)) for m in said]


def test_a_loop_is_context_and_what_the_oracle_does_next_is_learned() -> None:
    played = scene("booking", ("redirect", 2))
    old = played.calls[0]
    (row,) = corrected(played, [call(old.name, **old.given)] * 9)
    names, weights = zip(*turns(row), strict=True)
    again = (old.name,) * (1 + MAX_REPEATED)
    assert names == (*again, *(step.name for step in played.calls), FINAL_ANSWER)
    mistakes = [step.provoked for step in played.calls]
    assert any(mistakes)
    assert weights == (*(0 for _ in again), *(int(not each) for each in mistakes), 1)
    assert played.rehearsal[-1].said in str(row["messages"][-1])


def test_who_passes_teaches_nothing_and_who_fails_at_once_cannot_be_put_right() -> None:
    played = scene("listing")
    assert corrected(played, rehearsed(played)) is None
    assert corrected(played, [call(FINAL_ANSWER, answer="AAAA-AAAA")]) == []


def test_what_the_model_has_found_out_is_not_asked_for_again() -> None:
    """It made every call rightly, the write too, and then refused."""
    played = scene("booking")
    replies = [*rehearsed(played)[:-1], call(REFUSE, reason="not_found")]
    (row,) = corrected(played, replies)
    assert [weight for _, weight in turns(row)] == [0] * len(played.calls) + [1]
    assert turns(row)[-1][0] == FINAL_ANSWER


def test_a_wrong_write_is_cut_off_with_what_follows() -> None:
    played = scene("booking")
    *before, write = played.calls
    wrong = {**write.given, "party_size": write.given["party_size"] + 1}
    replies = [call(s.name, **s.given) for s in before]
    replies += [call(write.name, **wrong), call(FINAL_ANSWER, answer="AAAA-AAAA")]
    (row,) = corrected(played, replies)
    assert turns(row)[-2:] == [(write.name, 1), (FINAL_ANSWER, 1)]
    assert [name for name, _ in turns(row)].count(write.name) == 1


def test_each_list_of_tools_with_something_to_learn_is_a_row() -> None:
    played = scene("booking", ("tool_removed_midway", 3))
    first = played.calls[0]
    replies = [call(first.name, **first.given), *[call("no_such_tool", a="b")] * 5]
    rows = corrected(played, replies)
    (row,) = rows  # the first list of tools has nothing but the model's own turns
    own = [(first.name, 0), *[("no_such_tool", 0)] * (1 + MAX_REPEATED)]
    assert turns(row)[: len(own)] == own
    assert {weight for _, weight in turns(row)[len(own) :]} == {1}
    assert turns(row)[-1][0] == FINAL_ANSWER


class Stubborn:
    """An agent that says the same in every turn."""

    def reply_batch(self, turns: list) -> list[Reply]:
        return [call("nothing_of_that_name") for _ in turns]


def test_acting_ends_where_it_goes_round() -> None:
    some = [scene("listing"), scene("booking")]
    assert [len(replies) for replies in act(Stubborn(), some)] == [MAX_REPEATED + 1] * 2


def test_two_rounds_train_on_and_are_not_made_twice(model: Path, tmp_path: Path) -> None:
    mix = Mix(kinds=("listing", "hours"), size=200, alpha=0.5, shifts=("SBP",))
    settings = preset("smoke", model=str(model), steps=1, batch=2, threads=1)
    job = Job("dagger", mix, 10, msgspec.to_builtins(settings), 2)
    job.run(tmp_path)
    heads = [(tmp_path / f"round-{n}" / "rows.jsonl").read_bytes() for n in (1, 2)]
    rounds = [msgspec.json.decode(text.splitlines()[0], type=Round) for text in heads]
    assert all(each.continued + each.filled == 2 for each in rounds)
    assert all(each.scenes > 0 and each.passed == 0 for each in rounds)
    record = training_record(tmp_path / "model")
    assert record["data"]["round"] == 2
    (first,) = (tmp_path / "round-0").glob("*.safetensors")
    (last,) = (tmp_path / "model").glob("*.safetensors")
    assert first.read_bytes() != last.read_bytes()
    before = last.stat().st_mtime_ns
    job.run(tmp_path)
    assert last.stat().st_mtime_ns == before
    other = msgspec.structs.replace(job, settings={**job.settings, "lr": 0.5})
    with pytest.raises(UsageError, match=r"round-0 was made of something else \(lr\)"):
        other.run(tmp_path)
    more = msgspec.structs.replace(job, count=20)
    with pytest.raises(UsageError, match=r"round-0 was made of something else \(count\)"):
        more.run(tmp_path)
    first.write_bytes(last.read_bytes())  # another model in the place of the first
    with pytest.raises(UsageError, match=r"rows.jsonl was made of something else \(another mix"):
        job.run(tmp_path)


def test_rounds_that_aggregate_train_anew_on_all_trajectories(model: Path, tmp_path: Path) -> None:
    mix = Mix(kinds=("listing", "hours"), size=200, alpha=0.5, shifts=("SBP",))
    settings = preset("smoke", model=str(model), steps=0, epochs=1, batch=2, threads=1)
    job = Job("dagger", mix, 10, msgspec.to_builtins(settings), 2, aggregate=True)
    job.run(tmp_path)
    places = ("round-0", "round-1/model", "model")
    records = [training_record(tmp_path / place) for place in places]
    rows = [record["rows"] for record in records]
    assert rows[0] < rows[1] < rows[2], "those of all rounds so far"
    assert {record["settings"]["model"] for record in records} == {model.name}, "not the last one"
    assert all(record["data"]["aggregate"] for record in records)
    alone = msgspec.structs.replace(job, aggregate=False)
    with pytest.raises(UsageError, match="round-1/model was made of something else"):
        alone.run(tmp_path)


def test_dagger_in_several_processes_is_refused_before_any_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Job("dagger", Mix(alpha=0.5), 10, msgspec.to_builtins(preset("smoke")), 1)
    with pytest.raises(UsageError, match="--launch touch x: DAgger trains in one process"):
        job.run(tmp_path / "run", launch="touch x")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UsageError, match="in one process"):
        job.run(tmp_path / "run")
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_done_is_said(tmp_path: Path) -> None:
    for alpha, count, rounds in ((0.0, 10, 2), (0.5, 10, 0), (0.5, 2, 2)):
        with pytest.raises(UsageError, match="DAgger takes at least 1 round"):
            train(Mix(alpha=alpha), count, rounds, preset("smoke"), tmp_path / "model")
