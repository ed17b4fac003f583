"""The pictures of studies."""

from __future__ import annotations

from toolshift_lab.plots import slim

ROUND = '<path class="mark" transform="translate(6,0)" d="M2.5,0A2.5,2.5,0,1,1,-2.5,0A2.5,2.5,0,1,1,2.5,0" fill="#888"/>'  # fmt: skip # noqa: E501
LINE = '<path d="M0,0h420v0h-420Z"/>'


def test_what_goes_round_is_a_circle_and_other_paths_stay() -> None:
    seen = slim(f"<svg>{ROUND}{LINE}</svg>")
    assert seen == f'<svg><circle cx="6" cy="0" r="2.5" fill="#888"/>{LINE}</svg>'
    assert slim(seen) == seen


def test_a_dot_keeps_the_width_of_a_line_that_is_seen() -> None:
    dot = '<circle transform="translate(1,2)" r="1" stroke-width="2"{}/>'
    assert slim(dot.format("")) == '<circle cx="1" cy="2" r="1"/>'
    seen = '<circle cx="1" cy="2" r="1" stroke-width="2" stroke="red"/>'
    assert slim(dot.format(' stroke="red"')) == seen


def test_what_is_usual_is_left_out_and_the_font_is_said_once() -> None:
    text = '<text text-anchor="start" font-family="sans-serif" opacity="1" x="1">a</text>'
    seen = slim(f'<svg width="9">{text}{text}</svg>')
    assert (
        seen == '<svg font-family="sans-serif" width="9">' + '<text x="1">a</text>' * 2 + "</svg>"
    )
    assert slim(seen) == seen


def test_groups_that_say_nothing_and_what_lines_have_anyway_are_left_out() -> None:
    line = '<line transform="translate(0,9)" x2="-5" y2="0" stroke="#888" stroke-width="1"/>'
    seen = slim(f'<svg><g><g fill="none"><g>{line}</g></g></g></svg>')
    kept = '<line transform="translate(0,9)" x2="-5" stroke="#888"/>'
    assert seen == f'<svg><g fill="none">{kept}</g></svg>'
    assert slim(seen) == seen
