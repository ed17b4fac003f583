"""GRPO end to end: what is computed, what is learned, and that a run can be gone on from."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("trl")

import msgspec  # noqa: E402
from train import tiny  # noqa: E402
from train.grpo_runs import MIX, letters, same, settings, steps_of, weights  # noqa: E402
from transformers import TrainerCallback  # noqa: E402

from toolshift.agents.local import LocalAgent  # noqa: E402
from toolshift.cli.grpo import GrpoOptions, grpo_command  # noqa: E402
from toolshift.core.errors import UsageError  # noqa: E402
from toolshift.lm import device as devices  # noqa: E402
from toolshift.lm.inference import load_model  # noqa: E402
from toolshift.train.callbacks import Spent, checkpoints  # noqa: E402
from toolshift.train.curves import read_curves  # noqa: E402
from toolshift.train.grpo import build, train  # noqa: E402
from toolshift.train.grpo_settings import check, preset  # noqa: E402
from toolshift.train.grpo_trainer import GrpoTrainer, _config, in_order  # noqa: E402
from toolshift.train.logprobs import add_scores  # noqa: E402
from toolshift.train.model import find_base  # noqa: E402
from toolshift.train.presets import Settings  # noqa: E402
from toolshift.train.reward import Earned, Weights  # noqa: E402
from toolshift.train.rollout import Rollout, View  # noqa: E402
from toolshift.train.scenes import Mix, dev_arms, draw, draws  # noqa: E402
from toolshift.train.screen import Tried, chosen, screen  # noqa: E402
from toolshift.train.sft import train as train_sft  # noqa: E402

torch.set_num_threads(1)  # tests run beside each other
SCRIPT = Path(__file__)


@pytest.fixture(scope="module")
def adapter(model, tmp_path_factory):
    out = tmp_path_factory.mktemp("adapters") / "sft"
    settings = Settings(model=str(model), rank=4, steps=1, batch=2, save_every=0, threads=1)
    return train_sft(tiny.rows(2), settings, out)


# --- what is computed ------------------------------------------------------------------------


def test_scores_and_gradients_are_those_of_plain_forward_passes(model, tmp_path):
    asked = settings(model)
    trainer = build(MIX, asked, tmp_path, find_base(asked), Spent())
    generator = torch.Generator().manual_seed(0)
    opening = torch.randint(3, 600, (20,), generator=generator).tolist()
    rows = [([*opening, 5, 6], [7, 8, 9, 10]), ([*opening, 5], [11, 12])]
    width = max(len(prompt) for prompt, _ in rows)
    ids = torch.tensor([[0] * (width - len(p)) + p + c + [0] * (4 - len(c)) for p, c in rows])
    real = torch.tensor(
        [[0] * (width - len(p)) + [1] * len(p + c) + [0] * (4 - len(c)) for p, c in rows]
    )
    trainer._own = own = torch.tensor([[1, 0, 1, 1], [1, 1, 0, 0]]).bool()
    logps, entropies, _ = trainer._get_per_token_logps_and_entropies(
        trainer.model, ids, real, 4, compute_entropy=True
    )
    logps.sum().backward()
    plain = load_model(model, "float32").train()
    total = 0.0
    for row, (prompt, completion) in enumerate(rows):
        logits = plain(torch.tensor([prompt + completion])).logits[0].log_softmax(-1)
        for place, token in enumerate(completion):
            likely = logits[len(prompt) + place - 1]
            if own[row, place]:
                total = total + likely[token]
                assert logps[row, place].item() == pytest.approx(likely[token].item(), abs=1e-5)
                entropy = -(likely.exp() * likely).sum().item()
                assert entropies[row, place].item() == pytest.approx(entropy, abs=1e-4)
            else:
                assert logps[row, place] == 0
    total.backward()
    for name, weight in plain.named_parameters():
        grad = trainer.model.get_parameter(name).grad
        assert torch.allclose(grad, weight.grad, atol=1e-5), name


def test_rows_without_an_advantage_are_not_read_and_change_no_gradient(model, tmp_path):
    asked = settings(model, groups=3, group=2, batch=6)
    trainer = build(MIX, asked, tmp_path, find_base(asked), Spent())
    trainer.current_gradient_accumulation_steps = 1
    trainer.model.train()
    generator = torch.Generator().manual_seed(0)
    prompts = torch.randint(3, 600, (6, 9), generator=generator)
    completions = torch.randint(3, 600, (6, 5), generator=generator)
    completions[1, :2] = completions[0, :2]
    prompts[1] = prompts[0]
    masks = torch.ones(6, 5, dtype=torch.long)
    inputs = {
        "prompt_ids": prompts,
        "prompt_mask": torch.ones_like(prompts),
        "completion_ids": completions,
        "completion_mask": masks,
        "tool_mask": masks,
        "advantages": torch.tensor([1.0, -1.0, 0.0, 0.0, 0.5, -0.5]),
        "num_items_in_batch": torch.tensor(30),
        "sampling_per_token_logps": torch.zeros(6, 5),
    }
    read = []
    scores = trainer._scores
    trainer._scores = lambda *args: (read.append(int(args[-1].sum())), scores(*args))[1]
    trainer._compute_loss(trainer.model, inputs).backward()
    assert read == [20]  # four of the six rows of five tokens
    plain = load_model(model, "float32").train()
    ids = torch.cat([prompts, completions], dim=1)
    likely = plain(ids).logits[:, 8:-1].log_softmax(-1).gather(-1, completions[..., None])[..., 0]
    (-(likely * inputs["advantages"][:, None]).sum() / 30).backward()
    for name, weight in plain.named_parameters():
        grad = trainer.model.get_parameter(name).grad
        assert torch.allclose(grad, weight.grad, atol=1e-5), name
    assert trainer._metrics["train"]["entropy"][-1] > 0


def test_what_is_paid_becomes_more_likely(model, tmp_path):
    asked = settings(model, steps=12, groups=2, group=8, batch=16, lr=0.02, save_every=0)
    train(MIX, asked, tmp_path / "run", pay=letters)
    rewards = [line["reward"] for line in steps_of(tmp_path / "run")]
    assert sum(rewards[-3:]) / 3 > sum(rewards[:3]) / 3 + 0.08
    # What was sampled and what was scored are the same distribution.
    assert max(line["drift"] for line in steps_of(tmp_path / "run")) < 1e-3


def test_where_all_earn_alike_nothing_is_changed(model, tmp_path):
    train(MIX, settings(model), tmp_path / "run")
    assert [line["flat_groups"] for line in steps_of(tmp_path / "run")] == [1.0, 1.0]
    assert same(tmp_path / "run", model)


# --- groups without gradient, and every list of tools ----------------------------------------


def test_flat_groups_are_drawn_again_and_it_is_said(model, tmp_path):
    seen = []

    def pay(episode):
        seen.append(episode.scene.task.id)
        return 1.0

    asked = settings(model, groups=2, group=2, redraw=2, save_every=0)
    train(MIX, asked, tmp_path / "run", pay=pay)
    steps = steps_of(tmp_path / "run")
    assert [line["drawn_again"] for line in steps] == [4.0, 4.0]
    assert [line["outside"] for line in steps] == [2.0, 2.0]
    assert len(seen) == 2 * (1 + 2) * 4
    drawn = [seen[at : at + 2] for at in range(0, len(seen), 2)]
    assert all(one == other for one, other in drawn), "a group is of one scene"
    assert len({one for one, _ in drawn}) > 8, "others, and not the same ones again"


@pytest.mark.parametrize("ahead", [1, 5])
def test_scenes_played_beforehand_are_those_that_would_be_played_later(
    model, tmp_path, monkeypatch, ahead
):
    def pay(episode):
        passed = int(episode.scene.task.id[-1], 16) % 3 == 0  # of a third of the scenes no group
        return letters(episode) if passed else 1.0

    asked = settings(model, steps=3, groups=2, group=4, batch=8, redraw=3, lr=0.02, save_every=0)
    train(MIX, asked, tmp_path / "later", pay=pay)
    played = []
    sizes = devices.SIZES["cpu"]._replace(ahead=ahead)
    monkeypatch.setitem(devices.SIZES, "cpu", sizes)
    train(MIX, asked, tmp_path / "before", pay=lambda each: played.append(each) or pay(each))
    told = ("reward", "reward_drawn", "drawn_again", "outside", "flat_groups", "loss")
    later, before = steps_of(tmp_path / "later"), steps_of(tmp_path / "before")
    assert [[line[name] for name in told] for line in before] == [
        [pytest.approx(line[name], abs=1e-5) for name in told] for line in later
    ]
    assert any(line["drawn_again"] for line in later)
    assert not same(tmp_path / "before", model)
    assert len(played) >= 3 * 8 * (1 + min(ahead, 3))


def test_the_reward_of_the_scenes_as_first_drawn_is_told_apart(model, tmp_path):
    """Those that are kept are chosen by what they earn, so their mean is not that of the mix."""
    seen = []

    def pay(episode):
        seen.append(episode.scene.task.id)
        return float(len(seen) > 4) * (len(seen) % 2)  # the first four episodes are flat groups

    asked = settings(model, steps=1, groups=2, group=2, redraw=1, save_every=0)
    train(MIX, asked, tmp_path / "run", pay=pay)
    (step,) = steps_of(tmp_path / "run")
    assert (step["reward_drawn"], step["reward"]) == (0.0, 0.5)
    assert (step["drawn_again"], step["outside"], step["passed_drawn"]) == (2.0, 0.0, 0.0)


def test_a_group_keeps_its_scene_where_it_has_gradient_and_headroom(model, tmp_path):
    asked = settings(model, group=4, batch=4, redraw=1, headroom=(0.25, 0.75))
    player = build(MIX, asked, tmp_path, find_base(asked), Spent()).player
    verdict = {True: SimpleNamespace(passed=True), False: SimpleNamespace(passed=False)}

    def group(*earned):
        return [(None, Earned(total, {}, verdict[passed])) for total, passed in earned]

    spread = ((1.0, True), (0.0, False), (0.2, False), (0.0, False))
    alike = ((0.5, True), (0.5, False), (0.5, True), (0.5, False))
    easy = ((1.0, True), (0.9, True), (1.0, True), (1.0, True))
    hard = ((0.1, False), (0.0, False), (0.0, False), (0.0, False))
    void = ((None, False), (1.0, True), (None, False), (1.0, True))
    player.played = [*group(*spread), *group(*alike), *group(*easy), *group(*hard), *group(*void)]
    assert player._without_gradient() == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"redraw": -1}, "redraw must be at least 0"),
        ({"headroom": (0.2, 0.8)}, "give --redraw as well"),
        ({"redraw": 1, "headroom": (0.8, 0.2)}, "the lesser first"),
        ({"redraw": 1, "headroom": (0.2, 1.8)}, "from 0 to 1"),
    ],
)
def test_what_cannot_be_drawn_again_is_said(changes, said):
    with pytest.raises(UsageError, match=said):
        preset("smoke", **changes)


def without_tree(trainer):
    """As on a GPU, and for models that do not attend plainly."""
    trainer._tree = False
    add_scores(trainer.model, trainer.temperature, share=True, tree=False)


@pytest.mark.parametrize("tree", [True, False], ids=["tree", "openings"])
def test_what_was_said_under_each_list_of_tools_has_its_gradient(model, tmp_path, tree):
    asked = settings(model, every_view=True)
    trainer = build(MIX, asked, tmp_path, find_base(asked), Spent())
    if not tree:
        without_tree(trainer)
    first = View([5, 6, 7], [8, 9, 10], [-1.0, 0.0, -1.0], [1, 0, 1])
    second = View([11, 12, 13, 14], [15, 16], [-1.0, -1.0], [1, 1])
    changed = Rollout(*second, None, 2, (first,))
    other = Rollout([5, 6, 7], [8], [-1.0], [1], None, 1)
    third = View([11, 12, 13, 14], [17, 18, 19], [0.0, -1.0, -1.0], [0, 1, 1])
    sibling = Rollout(*third, None, 2, (View([5, 6, 7], [9, 9], [-1.0, -1.0], [1, 1]),))
    rows = [trainer.player._row(each) for each in (changed, other, sibling)]
    assert rows[0].completion_ids == [8, 9, 10, 11, 12, 13, 14, 15, 16]
    assert rows[0].env_mask == [1, 0, 1, 0, 0, 0, 0, 1, 1]
    width = len(rows[0].completion_ids)
    pads = [width - len(row.completion_ids) for row in rows]
    ids = torch.tensor(
        [r.prompt_ids + r.completion_ids + [0] * pad for r, pad in zip(rows, pads, strict=True)]
    )
    real = torch.tensor([[1] * (3 + width - pad) + [0] * pad for pad in pads])
    trainer._own = own = torch.tensor(
        [row.env_mask + [0] * pad for row, pad in zip(rows, pads, strict=True)]
    ).bool()
    views = trainer._apart(ids, real, own)
    read_once = [5] if tree else [3, 2]
    assert [len(read.ids) for read, _ in views] == read_once
    assert tree or [read.shared for read, _ in views] == [2, 3]
    assert sum(those.int() for _, those in views).equal(own.int())
    logps, _, _ = trainer._get_per_token_logps_and_entropies(trainer.model, ids, real, width)
    logps.sum().backward()
    plain = load_model(model, "float32").train()
    wanted = []
    for view in (first, second, rows[1], *sibling.earlier, third):
        tokens = [*view.prompt_ids, *view.completion_ids]
        likely = plain(torch.tensor([tokens])).logits[0].log_softmax(-1)
        for place, (token, said) in enumerate(zip(view.completion_ids, view.env_mask, strict=True)):
            if said:
                wanted.append(likely[len(view.prompt_ids) + place - 1, token])
    assert torch.allclose(logps[own], torch.stack(wanted), atol=1e-5)
    trainer._own = None  # as where a reference is asked, and by vLLM
    every, _, _ = trainer._get_per_token_logps_and_entropies(trainer.model, ids, real, width)
    assert torch.allclose(every[own], logps[own], atol=1e-5)
    torch.stack(wanted).sum().backward()
    for name, weight in plain.named_parameters():
        grad = trainer.model.get_parameter(name).grad
        assert torch.allclose(grad, weight.grad, atol=1e-5), name


def test_rows_of_one_list_are_read_together_whatever_their_group(model, tmp_path):
    """Two groups under one list, a third under another: two readings, and right scores."""
    asked = settings(model, groups=3, group=2, batch=6)
    trainer = build(MIX, asked, tmp_path, find_base(asked), Spent())
    without_tree(trainer)
    listed, elsewhere = [5, 6, 7, 8, 9, 10], [30, 31, 32, 33, 34, 35]
    prompts = [[*listed, 20], [*listed, 20], [*elsewhere, 22], [*listed, 21], [*listed, 21]]
    ids = torch.tensor([[*prompt, 40 + n, 41, 42] for n, prompt in enumerate(prompts)])
    real = torch.ones_like(ids)
    trainer._own = own = torch.ones(len(prompts), 3, dtype=torch.bool)
    read = trainer._apart(ids, real, own)
    assert [(len(rows.ids), rows.shared) for rows, _ in read] == [(4, 6), (1, 0)]
    assert sum(those.int() for _, those in read).equal(own.int())
    logps, _, _ = trainer._get_per_token_logps_and_entropies(trainer.model, ids, real, 3)
    plain = load_model(model, "float32")(ids).logits.log_softmax(-1)
    wanted = plain[:, 6:-1].gather(-1, ids[:, 7:, None])[..., 0]
    assert torch.allclose(logps, wanted, atol=1e-5)


# --- scenes that were chosen, and loops ------------------------------------------------------


def test_scenes_that_were_chosen_come_in_rounds_and_never_twice_in_a_step():
    asked = preset("smoke", scenes=(7, 3, 11, 5, 20), groups=2, steps=10)
    numbers = in_order(asked)
    assert len(numbers) == 20
    assert {numbers.count(each) for each in asked.scenes} == {4}
    assert all(numbers[at] != numbers[at + 1] for at in range(0, 20, 2))
    assert numbers[:5] != numbers[5:10]
    assert in_order(preset("smoke", groups=2, steps=3)) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"scenes": (1, 2), "redraw": 1}, "set redraw to 0"),
        ({"scenes": (1, 1, 2)}, "each given once"),
        ({"scenes": (-1, 2)}, "0 or more"),
        ({"scenes": (1,), "groups": 2}, "a step takes 2 scenes, and 1 are given"),
        ({"max_repeats": 1}, "at least 2"),
    ],
)
def test_what_cannot_be_chosen_is_said(changes, said):
    with pytest.raises(UsageError, match=said):
        preset("smoke", **changes)


def test_a_screen_goes_on_and_its_scenes_are_those_that_are_trained_on(model, tmp_path):
    asked, file = settings(model, groups=2, group=2, max_repeats=3), tmp_path / "screen.jsonl"
    first = screen(MIX, asked, file, 3, samples=2)
    assert [each.scene for each in first] == [0, 1, 2]
    told = file.read_bytes()
    more = screen(MIX, asked, file, 5, samples=2)
    assert file.read_bytes().startswith(told)
    assert more[:3] == first
    assert [each.scene for each in more] == [0, 1, 2, 3, 4]
    with pytest.raises(UsageError, match="other samples"):
        screen(MIX, asked, file, 3, samples=4)
    tried = [Tried(4, 0, 4), Tried(9, 1, 4), Tried(6, 3, 4), Tried(2, 4, 4)]
    assert chosen(tried, 1, 3) == (9, 6)
    seen = []
    changed = msgspec.structs.replace(asked, scenes=(4, 2), steps=2, save_every=0)
    train(MIX, changed, tmp_path / "run", pay=lambda each: seen.append(each.scene.task.id) or 0.0)
    assert set(seen) == {draw(MIX, number).task.id for number in (2, 4)}


def test_the_command_screens_first_and_says_what_it_trains_on(model, tmp_path, capsys):
    asked = GrpoOptions(
        alpha=0.0, out=tmp_path / "run", preset="smoke", model=str(model), steps=1, group=2,
        groups=1, screen=3,
    )  # fmt: skip
    with pytest.raises(UsageError, match="screen more scenes, or start from a model that passes"):
        grpo_command(asked)
    assert "0 of 3 scenes pass in some episodes" in capsys.readouterr().err
    (kept,) = (tmp_path / "run").glob("screen-*.jsonl")
    tried = [json.loads(line) for line in kept.read_text().splitlines()]
    kept.write_text("".join(json.dumps({**one, "passed": 1}) + "\n" for one in tried))
    grpo_command(asked)  # goes on from what was played
    settings_of = json.loads((tmp_path / "run" / "asked.json").read_text())["settings"]
    assert settings_of["scenes"] == [0, 1, 2]


# --- batches, processes, resuming ------------------------------------------------------------


def test_the_layout_of_batches_changes_nothing(model, tmp_path):
    asked = settings(model, groups=2, group=2, lr=1e-3, save_every=0)
    for batch, rollout_batch in ((4, 32), (2, 1)):
        changed = msgspec.structs.replace(asked, batch=batch, rollout_batch=rollout_batch)
        train(MIX, changed, tmp_path / str(batch), pay=letters)
    assert not same(tmp_path / "4", model)
    assert same(tmp_path / "4", tmp_path / "2", 1e-4)
    one, other = steps_of(tmp_path / "4"), steps_of(tmp_path / "2")
    assert [line["reward"] for line in one] == [line["reward"] for line in other]


def test_a_resumed_run_is_the_same_run(model, tmp_path):
    # In bf16 it matters with which turns a turn was decoded, so an evaluation must leave no trace.
    asked = settings(model, steps=3, eval_every=2, save_at=(2,), lr=1e-3, precision="bfloat16")
    train(MIX, asked, tmp_path / "whole", pay=letters)
    lines = steps_of(tmp_path / "whole")
    whole = weights(tmp_path / "whole")
    train(MIX, asked, tmp_path / "whole", resume=2, pay=letters)
    again = weights(tmp_path / "whole")
    assert all(torch.equal(again[name], whole[name]) for name in whole)
    timed = {"seconds", "rollout_seconds", "sandbox_seconds"}
    for one, other in zip(lines, steps_of(tmp_path / "whole"), strict=True):
        assert {k: one[k] for k in one.keys() - timed} == {k: other[k] for k in one.keys() - timed}
    rolled = [line["rollout_seconds"] for line in steps_of(tmp_path / "whole")]
    assert rolled == sorted(rolled)  # the clock goes on where the checkpoint was
    assert rolled[0] > 0
    looks = [
        line for line in read_curves(tmp_path / "whole" / "curves.jsonl") if "reward" not in line
    ]
    assert [line["step"] for line in looks] == [0, 2, 3]
    assert looks[0]["clean_passed"] == 0.0
    record = json.loads((tmp_path / "whole" / "training.json").read_text("utf-8"))
    assert record["method"] == "grpo"
    assert record["evidence"].startswith("no evidence")
    assert record["data"]["mix"]["kinds"] == ["hours", "listing"]


def test_checkpoints_are_kept_where_the_command_says_and_callbacks_are_called(model, tmp_path):
    class ActResult(TrainerCallback):
        steps: ClassVar[list[int]] = []

        def on_step_end(self, args, state, control, **_):
            self.steps.append(state.global_step)

    kept = GrpoOptions(alpha=0.0, out=Path("out"), preset="smoke", save_at="2,1").settings().save_at
    assert kept == (1, 2)
    asked = settings(model, steps=3, save_at=kept, save_every=0, eval_every=0)
    train(MIX, asked, tmp_path / "run", pay=letters, callbacks=[ActResult()])
    assert [path.name for path in checkpoints(tmp_path / "run")] == ["checkpoint-1", "checkpoint-2"]
    assert ActResult.steps == [1, 2, 3]


def test_the_learning_rate_rises_from_the_first_step_on(model, tmp_path):
    asked = settings(model, steps=4, warmup=0.5, lr=1e-3, save_every=0, eval_every=0)
    train(MIX, asked, tmp_path / "run", pay=letters)
    rates = [line["lr"] for line in steps_of(tmp_path / "run")]
    assert rates == pytest.approx([5e-4, 1e-3, 1e-3, 1e-3])


def test_ctrl_c_keeps_the_steps_that_are_done(model, tmp_path, capfd):
    asked = settings(model, steps=3, save_every=0, lr=1e-3)
    train(MIX, asked, tmp_path / "whole", pay=letters)
    paid = []

    def interrupt(episode):
        paid.append(episode)
        if len(paid) == 5:  # in the second step
            os.kill(os.getpid(), signal.SIGINT)
        return letters(episode)

    with pytest.raises(KeyboardInterrupt):
        train(MIX, asked, tmp_path / "run", pay=interrupt)
    assert [path.name for path in checkpoints(tmp_path / "run")] == ["checkpoint-2"]
    assert "--resume continues" in capfd.readouterr().err
    with pytest.raises(UsageError, match=r"other settings or data \(pay\)"):
        train(MIX, asked, tmp_path / "run", resume=True, pay=letters)
    with pytest.raises(UsageError, match=r"other settings or data \(pay\)"):
        train(MIX, asked, tmp_path / "run", resume=True)
    train(MIX, asked, tmp_path / "run", resume=True, pay=interrupt)
    assert same(tmp_path / "run", tmp_path / "whole")


def test_only_the_first_process_takes_lines_from_the_curves(model, tmp_path, monkeypatch):
    asked = settings(model, steps=2, save_at=(1,), save_every=0, lr=1e-3)
    train(MIX, asked, tmp_path / "run", pay=letters)
    before = (tmp_path / "run" / "curves.jsonl").read_text("utf-8")
    assert len(before.splitlines()) == 2
    monkeypatch.setattr(GrpoTrainer, "is_world_process_zero", lambda trainer: False)
    train(MIX, asked, tmp_path / "run", resume=1, pay=letters)
    assert (tmp_path / "run" / "curves.jsonl").read_text("utf-8") == before


@pytest.mark.slow
def test_two_processes_train_as_one_does(tmp_path):
    """The few-layer Qwen2 of the `paper` preset's classes and settings, under accelerate."""
    model = tiny.qwen(tmp_path / "qwen")
    command = [
        *(*tiny.two_processes(), str(SCRIPT), str(model), str(tmp_path / "two")),
    ]
    paths = os.pathsep.join([str(SCRIPT.parents[1]), *sys.path])
    environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    record = json.loads((tmp_path / "two" / "training.json").read_bytes())
    assert record["hardware"]["processes"] == 2
    train(MIX, for_two(model, batch=4), tmp_path / "one", pay=letters)
    rewards = [[line["reward"] for line in steps_of(tmp_path / run)] for run in ("one", "two")]
    assert rewards[0] == pytest.approx(rewards[1], abs=1e-5)
    assert same(tmp_path / "one", tmp_path / "two", 1e-4)


def for_two(model, batch):
    """The preset `paper` as far as it goes without a GPU, in float32 so that runs can be equal."""
    return preset(
        "paper", model=str(model), vllm=False, precision="float32", lr=1e-3, warmup=0.0, steps=2,
        groups=4, group=2, batch=batch, turn_tokens=12, save_every=0, eval_every=0, threads=1,
    )  # fmt: skip


# --- adapters --------------------------------------------------------------------------------


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("beta", [0.0, 0.1])
def test_an_adapter_is_gone_on_from_and_can_be_run(
    model, adapter, tmp_path, beta, native, monkeypatch
):
    monkeypatch.setattr("toolshift.lm.dtype._has_bfloat16", lambda: native)
    asked = settings(model, full=False, adapter=str(adapter), rank=4, lr=0.01, beta=beta)
    asked = msgspec.structs.replace(asked, precision="bfloat16", save_every=0)
    out = train(MIX, asked, tmp_path / "run", pay=letters)
    assert not same(out, adapter)
    assert LocalAgent(model, adapter=out).adapter == out
    if beta:
        assert steps_of(out)[0]["kl"] == pytest.approx(0, abs=1e-6)
    assert not (out / "ref").exists()  # where the reference was


def test_an_adapter_that_cannot_be_merged_is_refused(model, adapter, tmp_path):
    dora = tmp_path / "dora"
    shutil.copytree(adapter, dora)
    config = json.loads((dora / "adapter_config.json").read_text("utf-8"))
    (dora / "adapter_config.json").write_text(json.dumps({**config, "use_dora": True}), "utf-8")
    with pytest.raises(UsageError, match="is a DoRA adapter"):
        train(MIX, settings(model, full=False, adapter=str(dora), rank=4), tmp_path / "run")


# --- evaluation ------------------------------------------------------------------------------


def test_an_evaluation_has_unsolvable_scenes_even_where_the_training_has_none():
    arms = dev_arms(MIX, 12, limits=True)
    assert set(arms) == {"clean", "limits"}
    assert all(scene.solvable for scene in arms["clean"])
    assert 0 < sum(scene.solvable for scene in arms["limits"]) < 12
    assert all(scene.task.pool == "dev" for those in arms.values() for scene in those)
    shifted = dev_arms(msgspec.structs.replace(MIX, alpha=0.3, shifts=("SBP",)), 4)["shifted"]
    assert all(scene.shifts for scene in shifted)
    never = msgspec.structs.replace(MIX, alpha=0.3, shifts=("reversed_order",), kinds=("listing",))
    assert not any(scene.shifts for scene in draws(msgspec.structs.replace(never, alpha=1.0), 4))
    assert set(dev_arms(never, 4)) == {"clean"}


def test_vllm_speaks_with_the_weights_of_now_and_is_read_as_torch_is():
    class Generation:
        """Stands for TRL's `VLLMGeneration`, which needs a GPU."""

        synced = 0

        def sync_weights(self):
            self.synced += 1

        def generate(self, prompts, images, num_generations):
            assert (self.temperature, self.max_completion_length) == (0.5, 8)
            return prompts, [[5, 2], [6]], [[[-0.1], [-0.2]], [[-0.3]]], None

    trainer = SimpleNamespace(
        use_vllm=True, vllm_generation=Generation(), state=SimpleNamespace(global_step=3),
        _last_loaded_step=2, player=SimpleNamespace(scribe=SimpleNamespace(stop=[2])),
    )  # fmt: skip
    GrpoTrainer.voice(trainer)
    voice = GrpoTrainer.voice(trainer)
    assert trainer.vllm_generation.synced == 1
    said = voice.say([[1], [1]], [0, 0], 8, 0.5)
    assert [(each.tokens, each.logprobs, each.ended) for each in said] == [
        ([5, 2], [-0.1, -0.2], True),
        ([6], [-0.3], False),
    ]


def test_the_loss_is_divided_by_the_tokens_of_an_episode_with_vllm_too(tmp_path):
    asked = preset("paper", vllm=True, precision="float32")
    assert _config(asked, tmp_path).max_completion_length == asked.episode_tokens


# --- what is refused -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"group": 1}, "group is 1: GRPO compares"),
        ({"temperature": 0.0}, "temperature must be above 0"),
        ({"beta": -1.0}, "beta must be 0 or more"),
        ({"batch": 3}, "4 episodes, which batches of 3 do not divide"),
        ({"objective": "gpo"}, "unknown objective 'gpo'"),
        ({"reward": Weights(failed=-1)}, "weight failed is -1"),
        ({"steps": 0}, "at least 1|nothing would be trained"),
        ({"turn_tokens": 500}, "turn_tokens is 500, more than the 400 of a whole episode"),
        ({"full": True, "beta": 0.1, "adapter": "some"}, "train with LoRA"),
    ],
)
def test_settings_out_of_range(changes, message):
    with pytest.raises(UsageError, match=message):
        preset("smoke", **changes)


def test_nothing_is_loaded_for_what_cannot_work(model, adapter, tmp_path, monkeypatch):
    monkeypatch.setattr("toolshift.train.grpo.load", partial(pytest.fail, "weights were loaded"))
    with pytest.raises(UsageError, match="pip install vllm"):
        train(MIX, settings(model, vllm=True), tmp_path / "run")
    with pytest.raises(UsageError, match="alpha is a share"):
        train(Mix(alpha=1.5), settings(model), tmp_path / "run")
    other = tiny.qwen(tmp_path / "qwen")
    with pytest.raises(UsageError, match=r"other weights|another architecture"):
        train(MIX, settings(other, full=False, adapter=str(adapter)), tmp_path / "run")
    bare = tiny.qwen(tmp_path / "bare")
    (bare / "chat_template.jinja").unlink()
    with pytest.raises(UsageError, match="no chat template"):
        train(MIX, settings(bare), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_presets_are_in_range():
    check(preset("smoke"))
    check(preset("small"))
    check(preset("paper"))
    with pytest.raises(UsageError, match="unknown preset 'big'"):
        preset("big")


if __name__ == "__main__":  # one of the two processes
    train(MIX, for_two(Path(sys.argv[1]), batch=4), Path(sys.argv[2]), pay=letters)
