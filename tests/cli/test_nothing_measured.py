"""Where nothing was measured no command ends as if all were well."""

from pathlib import Path
from xml.etree import ElementTree

import pytest
from running import Run

AGENTS = """
from toolshift import Reply

def down(messages, tools):
    return Reply(failure="HTTP 429: rate limit")
"""


@pytest.fixture
def runs(toolshift: Run) -> Run:
    """Two run folders of the same scenes: one of the oracle, one of an agent that is down."""
    Path("gone.py").write_text(AGENTS)
    scope = ("--world", "poi", "--tasks", "2", "--shift", "redirect:2", "--no-placebo")
    assert toolshift("run", *scope, "--agent", "oracle", "--out", "base")[0] == 0
    code, _, said = toolshift("run", *scope, "--agent", "gone:down", "--out", "down")
    assert (code, "Nothing was measured of gone:down" in said) == (1, True)
    return toolshift


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("report", "down", "--no-html"), 4, "Nothing was measured of gone:down"),
        (("report", "down", "--json"), 4, "Nothing was measured of gone:down"),
        (("report", "base", "down", "--no-html"), 4, "Nothing was measured of gone:down"),
        (("report", "base", "--no-html"), 0, ""),
        (("compare", "base", "down"), 4, "Nothing was compared"),
        (("compare", "down", "base"), 4, "Nothing was compared"),
        (("compare", "down", "down", "--json"), 4, "Nothing was compared"),
        (("compare", "base", "base"), 0, ""),
        (("gate", "down", "--baseline", "base", "--margin", "5"), 4, ""),
        (("gate", "base", "--baseline", "down", "--margin", "5"), 4, ""),
        (("gate", "down", "--baseline", "down", "--margin", "5"), 4, ""),
    ],
)
def test_the_exit_code_says_so(words: tuple[str, ...], code: int, sentence: str, runs: Run) -> None:
    found, _, said = runs(*words)
    assert found == code
    assert sentence in said


def test_junit_has_errors_and_no_skip(runs: Run) -> None:
    words = ("gate", "down", "--baseline", "base", "--margin", "5", "--junit", "gate.xml")
    assert runs(*words)[0] == 4
    tree = ElementTree.fromstring(Path("gate.xml").read_text())
    cases = list(tree.iter("testcase"))
    assert cases
    assert all(case.find("error") is not None for case in cases)
    assert not list(tree.iter("skipped"))
