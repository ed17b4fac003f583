"""The pytest plugin, in real runs of pytest."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from msgspec.structs import replace

from toolshift.agents.catalog import contestants
from toolshift.api import report_of, run_spec
from toolshift.connect import pytest_plugin, pytest_runs
from toolshift.connect.pytest_runs import Asked, Played, ShiftResult
from toolshift.core.errors import UsageError
from toolshift.runs.execute import RunSpec
from toolshift.runs.plan import make_plan
from toolshift.runs.run_folder import RunFolder
from toolshift.runs.suite import Selection, select

pytest_plugins = ["pytester"]
SHIFTS = ("identity_erasure:2", "format_drift:2")
PLUGIN = ("-p", "toolshift.connect.pytest_plugin")

FILE = """
import pytest

pytestmark = pytest.mark.toolshift(agent="memorises_names", baseline="main", margin=8)


def test_gate(shift_result):
    shift_result.assert_no_worse()
"""


@pytest.fixture(scope="module")
def baseline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plugin") / "main"
    run_spec(
        RunSpec(
            make_plan(select(Selection(shifts=SHIFTS, tasks=40))), contestants(["oracle"]), path
        )
    )
    return path


@pytest.fixture
def site(
    pytester: pytest.Pytester, baseline: Path, monkeypatch: pytest.MonkeyPatch
) -> pytest.Pytester:
    """A folder of tests beside a baseline of 40 tasks; no plugins but those that are named."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    (pytester.path / "main").symlink_to(baseline)
    pytester.makeini("[pytest]\naddopts = --strict-markers\n")
    return pytester


def pytest_in(site: pytest.Pytester, *words: str, apart: bool = False) -> pytest.RunResult:
    """Runs pytest in this process, or in one apart."""
    run = site.runpytest_subprocess if apart else site.runpytest_inprocess
    return run(*PLUGIN, *words)


def folders(site: pytest.Pytester, base: str = ".pytest_cache/d/toolshift") -> list[Path]:
    return [p for p in (site.path / base).iterdir() if not p.name.startswith(".")]


def test_one_test_a_tier_and_the_broken_one_fails(site: pytest.Pytester) -> None:
    site.makepyfile(FILE)
    done = pytest_in(site, "-v", "--junitxml=out.xml", apart=True)
    done.assert_outcomes(passed=2, failed=2)
    done.stdout.fnmatch_lines(
        [
            "*::test_gate?clean? PASSED*",
            "*::test_gate?perception? FAILED*",
            "*::test_gate?interaction? PASSED*",
            "*::test_gate?overall? FAILED*",
            "*memorises_names in perception: fail: * points, so it is worse by more than 8",
            "E*run folder: *",
        ]
    )
    assert (site.path / "out.xml").read_text().count("<failure") == 2
    [run] = folders(site)
    assert RunFolder.read(run).plan == RunFolder.read(site.path / "main").plan


def test_one_test_a_shift_with_measures_and_the_agent_itself(site: pytest.Pytester) -> None:
    site.makepyfile(
        """
        import pytest

        calls = {"episodes": 0}

        def refuses(messages, tools):
            calls["episodes"] += 1
            return {"role": "assistant", "content": "", "tool_calls": [
                {"id": "1", "function": {"name": "refuse", "arguments": '{"reason": "not_found"}'}}
            ]}

        @pytest.mark.toolshift(
            refuses, shifts=["fatal_error:1", "redirect:1"], tasks=4, by="shift", placebo=False
        )
        def test_each(shift_result):
            assert shift_result.accuracy == 0
            assert shift_result.drop != shift_result.drop  # the agent passes nothing clean
            if shift_result.label == "redirect":
                assert shift_result.measures.wrong_refusal.estimate == 1
            assert calls["episodes"] == shift_result.measures.episodes or (
                shift_result.label != "overall"
            )

        @pytest.mark.toolshift(
            refuses, shifts=["fatal_error:1", "redirect:1"], tasks=4, by="overall", placebo=False
        )
        def test_all(shift_result):
            shift_result.assert_no_worse()
        """
    )
    done = pytest_in(site)
    done.assert_outcomes(passed=4, failed=2)
    done.stdout.fnmatch_lines(["*there is nothing to compare with: give the marker a baseline*"])


@pytest.mark.parametrize(
    ("policy", "outcome"),
    [("fail", {"failed": 4}), ("skip", {"skipped": 4}), ("xfail", {"xfailed": 4})],
)
def test_what_is_inconclusive_is_as_the_project_says(
    site: pytest.Pytester, policy: str, outcome: dict[str, int]
) -> None:
    site.makeini(f"[pytest]\ntoolshift_inconclusive = {policy}\n")
    site.makepyfile(FILE.replace("memorises_names", "oracle").replace("margin=8", "margin=2"))
    done = pytest_in(site, "-rsxf")
    done.assert_outcomes(**outcome)
    assert "more tasks would decide" in done.stdout.str()


def test_the_nearer_marker_overrides(site: pytest.Pytester) -> None:
    site.makepyfile(
        FILE
        + """

@pytest.mark.toolshift(agent="oracle", by="overall", margin=9)
def test_other(shift_result):
    assert shift_result.agent == "oracle"
    shift_result.assert_no_worse()
"""
    )
    pytest_in(site, "-k", "other").assert_outcomes(passed=2, deselected=4)


def test_the_workers_of_xdist_share_one_run(site: pytest.Pytester) -> None:
    site.makepyfile(
        mine="""
        from pathlib import Path

        def refuses(messages, tools):
            with Path("calls").open("a") as file:
                file.write("x")
            return {"role": "assistant", "content": "", "tool_calls": [
                {"id": "1", "function": {"name": "refuse", "arguments": '{"reason": "not_found"}'}}
            ]}
        """,
        test_mine=FILE.replace("memorises_names", "mine:refuses").replace(
            "margin=8", "margin=8, inconclusive='skip'"
        ),
    )
    done = pytest_in(site, "-p", "xdist.plugin", "-n", "2", apart=True)
    done.assert_outcomes(failed=4)
    [run] = folders(site)
    cells = len(RunFolder.read(run).plan.cells)
    assert (site.path / "calls").read_text() == "x" * cells


def test_a_new_session_runs_again_unless_told_to_resume(site: pytest.Pytester) -> None:
    site.makepyfile(FILE.replace("memorises_names", "oracle"))
    out = ("--toolshift-out", "kept")
    pytest_in(site, *out).assert_outcomes(passed=4)
    [run] = folders(site, "kept")
    started = (run / "manifest.json").stat().st_mtime_ns
    pytest_in(site, *out, "--toolshift-resume").assert_outcomes(passed=4)
    assert (run / "manifest.json").stat().st_mtime_ns == started
    pytest_in(site, *out).assert_outcomes(passed=4)
    assert (run / "manifest.json").stat().st_mtime_ns > started


def test_a_run_that_is_not_ours_is_left_alone(site: pytest.Pytester) -> None:
    site.makepyfile(FILE.replace("memorises_names", "oracle"))
    out = ("--toolshift-out", "kept")
    pytest_in(site, *out).assert_outcomes(passed=4)
    [run] = folders(site, "kept")
    (run.parent / f".{run.name}.session").unlink()
    done = pytest_in(site, *out)
    done.assert_outcomes(errors=4)
    done.stdout.fnmatch_lines(["*was not made by this plugin*"])
    assert RunFolder.read(run).manifest.suite


MISTAKES = {
    'agent="oracel", tasks=2': "did you mean oracle",
    'agent="oracle", taks=2': "did you mean tasks",
    'agent="oracle", by="tiers"': "did you mean tier",
    'agent="oracle", suite="quik"': "did you mean quick",
    'agent="oracle", inconclusive="pass"': "unknown inconclusive",
    'agent="oracle", baseline="nowhere"': "contains no run",
    'agent="oracle", baseline="main", tasks=3': "is of another selection (tasks, arms)",
    "": "mark the test with",
}


def test_a_mistake_is_one_sentence_and_spares_other_tests(site: pytest.Pytester) -> None:
    marked = [
        f"""
@pytest.mark.toolshift({arguments})
def test_mistake_{place}(shift_result):
    pass
"""
        for place, arguments in enumerate(MISTAKES)
    ]
    site.makepyfile("import pytest\n" + "".join(marked) + "\ndef test_good():\n    pass\n")
    done = pytest_in(site)
    outcomes = done.parseoutcomes()
    assert outcomes["passed"] == 1
    assert outcomes["errors"] >= len(MISTAKES)
    text = done.stdout.str()
    for said in MISTAKES.values():
        assert said in text
    assert "Traceback" not in text
    assert "During handling" not in text


def test_pytest_finds_the_plugin() -> None:
    [entry] = entry_points(group="pytest11", name="toolshift")
    assert entry.value == "toolshift.connect.pytest_plugin"


def test_the_plugin_is_described_and_imports_nothing_heavy(site: pytest.Pytester) -> None:
    done = pytest_in(site, "--markers")
    done.stdout.fnmatch_lines(["@pytest.mark.toolshift(agent, *"])
    heavy = "numpy", "scipy", "msgspec", "toolshift.measure.gate", "toolshift.connect.pytest_runs"
    code = (
        "import sys, pytest; import toolshift.connect.pytest_plugin; "
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (0.8, 0.9, ""),
        (0.79, 0.8, "may be under 80%: 3 void episodes decide"),
        (0.6, 0.79, "passes 70% (60% with void episodes as failures, 79% as passes)> is under 80%"),
    ],
)
def test_void_episodes_count_against_a_pass_and_for_a_failure(
    baseline: Path, low: float, high: float, said: str
) -> None:
    folder = RunFolder.read(baseline)
    about = report_of(folder).agents[0]
    rates = [replace(about.clean.accuracy, estimate=rate) for rate in (0.7, low, high)]
    measures = replace(
        about.clean, void=3, accuracy=rates[0], accuracy_all=rates[1], accuracy_best=rates[2]
    )
    asked = Asked("oracle")
    result = ShiftResult("clean", "oracle", measures, baseline, asked, Played(folder, about))
    if not said:
        result.assert_accuracy(0.8)
        return
    with pytest.raises(AssertionError) as failure:
        result.assert_accuracy(0.8)
    assert said in str(failure.value)
    lenient = ShiftResult(
        "clean", "oracle", measures, baseline, Asked("oracle", inconclusive="skip"), result._played
    )
    wanted = pytest.skip.Exception if "may be" in said else AssertionError
    with pytest.raises(wanted):
        lenient.assert_accuracy(0.8)


def test_nothing_measured_fails_whatever_an_inconclusive_result_is(baseline: Path) -> None:
    folder = RunFolder.read(baseline)
    about = report_of(folder).agents[0]
    rates = [replace(about.clean.accuracy, estimate=rate) for rate in (float("nan"), 0.0, 1.0)]
    measures = replace(
        about.clean,
        void=about.clean.episodes,
        accuracy=rates[0],
        accuracy_all=rates[1],
        accuracy_best=rates[2],
    )
    for policy in ("skip", "xfail"):
        asked = Asked("oracle", inconclusive=policy)
        result = ShiftResult("clean", "oracle", measures, baseline, asked, Played(folder, about))
        outcomes = (AssertionError, pytest.skip.Exception, pytest.xfail.Exception)
        with pytest.raises(outcomes, match="void episodes decide") as told:
            result.assert_accuracy(0.8)
        assert told.type is AssertionError


def test_what_a_baseline_cannot_lose_fails_or_is_skipped(baseline: Path, tmp_path: Path) -> None:
    """Of clean and overall it is an error; a tier alone is left out, as by the gate."""
    after = RunFolder.read(baseline)
    shutil.copytree(baseline, tmp_path / "low")
    low = RunFolder.read(tmp_path / "low")

    def results(of_shifts: bool) -> Iterator[ShiftResult]:
        low.rewrite(
            replace(r, grade=replace(r.grade, passed=of_shifts and not low.cell(r).shifts))
            for r in after.records()
        )
        asked = Asked("oracle", baseline=tmp_path / "low", margin=20)
        played = Played(after, report_of(after).agents[0])
        rows = (played.about.clean, played.about.tiers[0])
        for row in rows:
            yield ShiftResult(row.label, "oracle", row, baseline, asked, played)

    for result in results(of_shifts=False):
        if result.label == "clean":
            with pytest.raises(AssertionError, match="a baseline with an agent that works"):
                result.assert_no_worse()
            with pytest.raises(AssertionError, match="no scene passed in the baseline"):
                result.assert_nothing_lost()
    clean, tier = results(of_shifts=True)
    with pytest.raises(pytest.skip.Exception, match="not measured"):
        tier.assert_no_worse()
    assert clean.compared().gated


def test_an_argument_of_the_marker_without_its_name_is_refused() -> None:
    class Node:
        config = None

        @staticmethod
        def iter_markers(name: str) -> list[pytest.Mark]:
            return [pytest.mark.toolshift("oracle", "standard").mark]

    with pytest.raises(UsageError, match="name 'standard', as in suite='standard'"):
        pytest_plugin._asked(Node())


# -- marked, and nothing is measured ---------------------------------------------------------------

MARK = 'pytest.mark.toolshift(agent="oracle", baseline="main", by="overall")'


def test_a_marked_test_without_the_fixture_is_an_error(site: pytest.Pytester) -> None:
    site.makepyfile(
        f"""
        import pytest

        @{MARK}
        def test_forgot():
            pass

        @pytest.mark.parametrize("one", [1, pytest.param(2, marks={MARK})])
        def test_one_of_two(one):
            pass

        class TestInside:
            @{MARK}
            def test_method(self):
                pass

            def test_plain(self):
                pass

        @pytest.mark.skip
        @{MARK}
        def test_skipped():
            pass
        """
    )
    done = pytest_in(site)
    done.assert_outcomes(passed=2, errors=3, skipped=1)
    done.stdout.fnmatch_lines(
        [
            "*test_forgot is marked with toolshift and does not take the fixture shift_result, so "
            "no agent is run*def test_agent(shift_result)*"
        ]
    )


def test_a_mark_of_a_module_or_a_class_is_for_those_that_take_the_fixture(
    site: pytest.Pytester,
) -> None:
    site.makepyfile(
        test_some=f"""
        import pytest

        pytestmark = {MARK}

        def test_measured(shift_result):
            assert shift_result.agent == "oracle"

        def test_helper():
            pass
        """,
        test_none=f"""
        import pytest

        pytestmark = {MARK}

        def test_first():
            pass

        def test_second():
            pass
        """,
        test_class=f"""
        import pytest

        @{MARK}
        class TestNone:
            def test_first(self):
                pass

        @{MARK}
        class TestThroughAnother:
            @pytest.fixture
            def mine(self, shift_result):
                return shift_result

            def test_mine(self, mine):
                assert mine.agent == "oracle"
        """,
    )
    done = pytest_in(site, "-k", "not measured")
    text = done.stdout.str()
    assert "test_none.py is marked with toolshift and none of its tests takes" in text
    assert "TestNone is marked with toolshift and none of its tests takes" in text
    done.assert_outcomes(errors=3, passed=3, deselected=2)
    pytest_in(site, "test_some.py::test_helper").assert_outcomes(passed=1)


def test_a_marked_unittest_is_an_error(site: pytest.Pytester) -> None:
    site.makepyfile(
        f"""
        import unittest
        import pytest

        class TestOld(unittest.TestCase):
            @{MARK}
            def test_old(self):
                pass
        """
    )
    pytest_in(site).assert_outcomes(errors=1)


EACH = """
import pytest


@pytest.mark.toolshift(agent="memorises_names", worlds=["poi"], shifts=["clean"], tasks=1)
def test_first(shift_result):
    shift_result.assert_accuracy(0.5)


@pytest.mark.toolshift(agent="oracle", worlds=["poi"], shifts=["clean"], tasks=1)
def test_other(shift_result):
    shift_result.assert_accuracy(0.5)
"""


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (SystemExit(3), "the run broke off: SystemExit: 3"),
        (ValueError("a bug"), "the run broke off: ValueError: a bug"),
    ],
)
def test_an_error_of_a_run_is_a_sentence_and_fails_its_own_tests(
    site: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, fault: BaseException, said: str
) -> None:
    play = pytest_runs._play

    def broken(asked: Asked, config: pytest.Config) -> Played:
        if asked.agent != "oracle":
            raise fault
        return play(asked, config)

    monkeypatch.setattr(pytest_runs, "_play", broken)
    site.makepyfile(EACH)
    done = pytest_in(site)
    done.assert_outcomes(passed=2, errors=2)
    text = done.stdout.str()
    assert said in text
    assert "Traceback" not in text
