"""What GRPO makes of a reward, and which rewards it refuses."""

from __future__ import annotations

from functools import partial

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("trl")

from train.grpo_runs import MIX, by_scene, letters, plain_letters, same, settings, steps_of  # noqa: E402

from toolshift.core.errors import UsageError  # noqa: E402
from toolshift.episode.grade import grade  # noqa: E402
from toolshift.train.grpo import train  # noqa: E402
from toolshift.train.grpo_trainer import GrpoTrainer  # noqa: E402
from toolshift.train.record import named  # noqa: E402
from toolshift.train.reward import Earned, Weights, earn  # noqa: E402

torch.set_num_threads(1)  # tests run beside each other


def test_a_reward_is_recorded_by_its_name_and_its_source():
    def bare(episode):
        return letters(episode)

    one = named(bare)

    def bare(episode):
        return letters(episode)._replace(total=0.0)

    assert one["name"].endswith(
        "test_a_reward_is_recorded_by_its_name_and_its_source.<locals>.bare"
    )
    assert named(bare)["name"] == one["name"]
    assert len({one["sha256"], named(bare)["sha256"], ""}) == 3
    some = [named(partial(earn, weights=Weights(solved=n)))["sha256"] for n in (1.0, 2.0, 2.0)]
    assert (some[0] != some[1], some[1] == some[2]) == (True, True)
    assert named(print) == {"name": "builtins.print", "sha256": ""}


def test_a_loss_that_is_no_number_stops_with_what_to_change(model, tmp_path, monkeypatch):
    def broken(*_, **__):
        return torch.tensor(torch.nan, requires_grad=True)

    monkeypatch.setattr(GrpoTrainer, "compute_loss", broken)
    asked = settings(model, steps=4, save_every=0)
    with pytest.raises(UsageError, match=r"learning rate"):
        train(MIX, asked, tmp_path / "run", pay=letters)


@pytest.mark.parametrize("paid", ["1", (1.0, {}), [1.0]])
def test_a_reward_that_is_neither_number_nor_nothing_is_refused(model, tmp_path, paid):
    def odd(episode):
        return paid

    with pytest.raises(UsageError, match=r"odd returned .*it must return a finite number, or None"):
        train(MIX, settings(model, steps=1, save_every=0), tmp_path / "run", pay=odd)


def test_a_reward_may_be_a_plain_number(model, tmp_path):
    asked = settings(model, groups=2, group=2, lr=1e-3, save_every=0)
    train(MIX, asked, tmp_path / "whole", pay=letters)
    train(MIX, asked, tmp_path / "plain", pay=plain_letters)
    assert same(tmp_path / "whole", tmp_path / "plain")
    assert not same(tmp_path / "plain", model)


@pytest.mark.parametrize("scale", ["group", "batch", "none"])
def test_groups_that_teach_nothing_are_counted_whatever_divides(model, tmp_path, scale):
    asked = settings(model, steps=1, groups=4, group=2, batch=8, scale=scale, save_every=0)
    train(MIX, asked, tmp_path / "run", pay=by_scene)
    (line,) = steps_of(tmp_path / "run")
    assert line["reward_std"] > 0, "the scenes differ"
    assert line["flat_groups"] == 1.0, "and the samples of each do not"


@pytest.mark.parametrize("paid", [float("nan"), float("inf")])
def test_a_reward_that_is_no_number_is_refused_by_the_name_of_its_function(model, tmp_path, paid):
    def stingy(episode):
        return Earned(paid, {}, grade(episode))

    with pytest.raises(UsageError, match=r"stingy returned (nan|inf)"):
        train(MIX, settings(model, steps=1, save_every=0), tmp_path / "run", pay=stingy)


def test_a_step_of_nothing_but_void_episodes_is_no_error(model, tmp_path):
    def void(episode):
        return Earned(None, {}, grade(episode))

    train(MIX, settings(model, steps=1, save_every=0), tmp_path / "run", pay=void)
    assert (tmp_path / "run" / "curves.jsonl").exists()
