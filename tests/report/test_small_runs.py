"""What is said of few tasks, of code that breaks down, and of a world of the user's own."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from surfing import run_into

import toolshift
from toolshift.api import report_of
from toolshift.episode.episode import Episode
from toolshift.episode.oracle import OracleAgent
from toolshift.measure.nothing_lost import judge_losses
from toolshift.measure.report import Report
from toolshift.report import summary as story
from toolshift.report.first_screen import sentence
from toolshift.report.html.page import make_page
from toolshift.report.junit import losses_junit
from toolshift.report.markdown import as_markdown
from toolshift.runs.run_folder import RunFolder

OWN = Path(__file__).parents[2] / "examples" / "own_tools" / "tasks.yaml"
SIGNIFICANCE = re.compile("significan|too few|noise floor|not even a total loss")
LINE = 36


def raises(messages: Any, tools: Any) -> Any:
    """Calls a tool, and breaks down at its result."""
    if messages[-1]["role"] == "user":
        call = {"name": tools[0]["function"]["name"], "arguments": "{}"}
        return {"role": "assistant", "tool_calls": [{"id": "1", "function": call}]}
    raise KeyError("the <model> is not there")


class Fragile(OracleAgent):
    """Works until something has moved; then its code ends with these words."""

    name = "fragile"

    def __init__(self, words: str = "") -> None:
        self.words = words

    def play(self, episode: Episode) -> None:
        if episode.scene.shifts and self.words:
            episode.crash(self.words)
        else:
            super().play(episode)


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    folder = tmp_path_factory.mktemp("own") / "run"
    asked = {"worlds": (str(OWN),), "shifts": ("identity_erasure",)}
    run_into(folder, "oracle", "memorises_names", **asked)
    return RunFolder.read(folder)


@pytest.fixture(scope="module")
def report(own: RunFolder) -> Report:
    return report_of(own)


@pytest.fixture(scope="module")
def page(own: RunFolder) -> str:
    return make_page([own])


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    folder = tmp_path_factory.mktemp("broken") / "run"
    run_into(folder, raises, tasks=2, shifts=("redirect",))
    return RunFolder.read(folder)


def first_part(page: str) -> str:
    return re.sub("<[^>]*>", "", page[page.index('id="summary"') : page.index('id="estimates"')])


def test_a_loss_on_few_tasks_is_a_fact(report: Report, page: str) -> None:
    each = report.agent("memorises_names")
    row = each.shifts[0]
    failed = sum(row.causes.values())
    assert failed == row.episodes == row.tasks < 6
    fails = f"fails all {failed} tasks that identity erasure touches"
    assert story.verdict(each) == "unsure"
    said = f"{fails} (it calls names that no longer exist)."
    assert story.headline(each) == f"Solves 100% of clean tasks, but {said}"
    assert f"<p>F{said[1:]}</p>" in page  # under "Largest losses"
    assert "1 of 2 agents fails tasks that it solves unchanged" in first_part(page)
    terminal = " ".join(report.summary(200, details=True).split())
    example = row.examples["memorised_name"]
    assert f"F{fails[1:]} (memorised name; toolshift trace RUN {example})." in terminal
    assert "> **Fails more under a shift than clean.**" in as_markdown([report])
    for text in (first_part(page), report.summary(), as_markdown([report]).split("<details>")[0]):
        assert not SIGNIFICANCE.search(text)
        assert "calls names that no longer exist" in text


def test_a_loss_that_may_be_the_placebos_is_said_to_be_so(report: Report) -> None:
    each = report.agent("memorises_names")
    held = [replace(row, significant=False, p_value=0.001) for row in each.tiers]
    shifts = [replace(row, significant=False, p_value=0.001) for row in each.shifts]
    sure = replace(each, tiers=held, shifts=shifts)
    assert story.doubts(sure) == "not significant against the placebo arm"
    assert story.headline(sure).endswith("not significant against the placebo arm.")
    assert story.doubts(report.agent("oracle")) == ""


def test_where_no_point_is_lost_the_old_sentence_stays(report: Report) -> None:
    sound = report.agent("oracle")
    assert story.verdict(sound) == "holds"
    assert story.unsure(sound) == ""
    assert "these shifts do not reach its limits" in story.headline(sound)


def test_no_drop_of_more_than_everything(report: Report, page: str) -> None:
    nothing = "none: not even a total loss would be significant"
    assert f"detectable drop of a tier: {nothing} (power 80%, level 5%" in " ".join(
        report.summary(400, details=True).split()
    )
    assert nothing in page
    assert nothing in as_markdown([report])


def test_a_world_of_a_file_has_no_size(report: Report, page: str) -> None:
    assert "entities a world" not in report.summary(details=True)
    assert "entities a world" not in page
    drawn = toolshift.evaluate("oracle", tasks=1, shifts=("redirect",))
    assert "of 200 entities a world." in drawn.summary(details=True)


def test_code_that_raises_is_named(broken: RunFolder) -> None:
    report = report_of(broken)
    each = report.agents[0]
    assert each.crashed is not None
    assert each.crashed.episodes == each.everything.episodes
    said = (
        f"code broke down in {each.crashed.episodes} of {each.everything.episodes} episodes: "
        f"KeyError: 'the <model> is not there' (test_small_runs.py, line {LINE}) "
        f"(toolshift trace RUN {each.crashed.example})."
    )
    assert f"Its own {said}" in " ".join(report.summary(300).split())
    assert f"Solves 0% of clean tasks. Its own {said}" == story.headline(each)
    assert f"Its own {said}" in " ".join(sentence(each).split())
    page = make_page([broken])
    assert "KeyError: &#39;the &lt;model&gt; is not there&#39;" in page
    assert r"the \<model\> is not there" in as_markdown([report])
    assert each.crashed.example in {record.episode for record in broken.records()}
    assert report.to_dict()["agents"][0]["crashed"]["said"].startswith("KeyError")


@pytest.mark.parametrize(
    "words",
    ["ConnectionError: closed", "it took more than 2 seconds, and was ended", "exit code 3"],
)
def test_code_that_breaks_down_is_a_cause_of_its_own_wherever_causes_are_told(
    tmp_path: Path, words: str
) -> None:
    asked: dict[str, Any] = {"worlds": (str(OWN),), "shifts": ("redirect",), "placebo": False}
    before = RunFolder.read(run_into(tmp_path / "a", Fragile(), **asked))
    after = RunFolder.read(run_into(tmp_path / "b", Fragile(words), **asked))
    report = report_of(after)
    screen = report.summary(200)
    clause = "its own code breaks down: an error, a timeout or no answer"
    page = make_page([after])
    for text in (screen, as_markdown([report]), first_part(page)):
        assert f"A fails: {clause}" in " ".join(text.replace("\\", "").split())
        assert "valid JSON" not in text
        assert "raise --agent-timeout" in text.replace("\\", "")
    assert f"{clause}." in sentence(report.agents[0])
    assert words in sentence(report.agents[0])
    found = judge_losses(before, after)
    assert found.changed
    junit = losses_junit(found, "b")
    assert junit.count(f": broke down: {words}. toolshift trace") == len(found.changed)
