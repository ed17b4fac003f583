"""Slips: the expert errs on purpose, is rejected, and puts it right."""

import json
from random import Random

import pytest

from toolshift.core.errors import UsageError
from toolshift.episode.episode import Episode
from toolshift.train.data import expert_rows, make_rows
from toolshift.train.injected_errors import KINDS
from toolshift.train.scenes import Mix, check, draw

MIX = Mix(alpha=0.5, shifts=("SBP", "EFP", "limits"), size=200, slips=1.0)


def turns(row):
    """The assistant's calls, each with its weight and what came back."""
    said = row["messages"]
    return [
        (m["tool_calls"][0]["function"], m.get("weight", 1), said[place + 1 : place + 2])
        for place, m in enumerate(said)
        if m["role"] == "assistant"
    ]


def test_a_slip_is_rejected_context_and_then_put_right():
    slipped = 0
    for number in range(40):
        scene = draw(MIX, number)
        faultless, with_slip = expert_rows(scene), expert_rows(scene, 1.0)
        taught = [[call for call, weight, _ in turns(row) if weight] for row in with_slip]
        assert taught == [[call for call, weight, _ in turns(row) if weight] for row in faultless]
        extra = sum(map(len, map(turns, with_slip))) - sum(map(len, map(turns, faultless)))
        if not extra:
            continue
        slipped += 1
        calls = [turn for row in with_slip for turn in turns(row)]
        known = [call for row in faultless for call, _, _ in turns(row)]
        wrong = [turn for turn in calls if turn[0] not in known]
        assert wrong
        for _, weight, back in wrong:
            assert weight == 0
            assert json.loads(back[0]["content"])["error"]["code"] in (
                "unknown_tool",
                "invalid_arguments",
            )
    assert slipped > 20


def test_a_slip_never_reaches_a_tool():
    for number in range(30):
        scene = draw(MIX, number)
        if not scene.calls:
            continue
        episode, rng = Episode(scene), Random(number)
        tool = next(t for t in scene.tools if t.name == scene.calls[0].name)
        for make in KINDS:
            wrong = make(episode, tool, dict(scene.calls[0].arguments), rng)
            if wrong is None:
                continue
            episode.take_call(wrong)
            assert not episode.steps[-1].ok
            assert not episode.steps[-1].provoked
        assert not episode.session.true_calls


def test_without_slips_no_call_of_a_clean_trajectory_fails():
    said = [message for row in make_rows(Mix(size=200), 30) for message in row["messages"]]
    assert all("weight" not in message for message in said)
    results = [message["content"] for message in said if message["role"] == "tool"]
    assert results
    assert not any(text.startswith('{"error"') for text in results)


def test_the_share_of_slips():
    rows = make_rows(Mix(size=200, slips=0.3), 100)
    marked = sum(any(m.get("weight") == 0 for m in row["messages"]) for row in rows)
    assert 15 <= marked <= 40


@pytest.mark.parametrize("share", [-0.1, 1.1])
def test_a_share_out_of_range_is_named(share):
    with pytest.raises(UsageError, match=r"slips is a share .* from 0 to 1, not"):
        check(Mix(slips=share))
