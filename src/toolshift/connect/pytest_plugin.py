"""The pytest plugin: a marker and a fixture, one test per tier or shift.

    @pytest.mark.toolshift(agent="my_pkg.agent:reply", baseline="runs/main", margin=5)
    def test_my_agent(shift_result):
        shift_result.assert_no_worse()

Everything that costs time is imported where it is used, so that other tests start as before.
"""

from __future__ import annotations

import inspect
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pytest

from toolshift.core.errors import UsageError, described
from toolshift.core.importing import load

if TYPE_CHECKING:
    from toolshift.connect.pytest_runs import Asked, ShiftResult

RUNS = "toolshift.connect.pytest_runs"
MARKER, FIXTURE = "toolshift", "shift_result"
_idle = pytest.StashKey[str]()
"""Which mark of a test measures nothing."""
ABOUT = (
    "toolshift(agent, suite='', by='tier', baseline=None, margin=5, inconclusive=None, "
    "max_void=5, ...): run an agent in shifted scenes; the fixture shift_result is one tier or "
    "shift of it. Further arguments are those of toolshift.evaluate."
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of the command line and of the ini file."""
    group = parser.getgroup("toolshift", "agents in shifted scenes")
    group.addoption(
        "--toolshift-out",
        metavar="DIR",
        help="where the run folders go (default: pytest's cache); those of an earlier session of "
        "this plugin are replaced",
    )
    group.addoption(
        "--toolshift-resume",
        action="store_true",
        help="go on with the runs of an earlier session instead of replacing them; only where the "
        "agent has not changed since",
    )
    group.addoption(
        "--toolshift-baseline", metavar="RUN", help="the baseline's run folder, for every marker"
    )
    parser.addini(
        "toolshift_inconclusive",
        "what an inconclusive gate is: fail (default), skip or xfail",
        default="fail",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Registers the marker."""
    config.addinivalue_line("markers", ABOUT)


@pytest.hookimpl(tryfirst=True)  # before tests are deselected
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Finds the tests that are marked, and through which nothing would be measured.

    A mark of a class or a module may be meant for other tests there. So its tests are wrong only
    where none of them takes the fixture.
    """
    inherited: defaultdict[pytest.Module | pytest.Class, list[pytest.Item]] = defaultdict(list)
    for item in items:
        place = next((node for node in reversed(item.listchain()) if _is_marked(node)), None)
        if place is item and not _measures(item):
            item.stash[_idle] = f"{item.name} is marked with toolshift and does not take"
        elif isinstance(place, pytest.Module | pytest.Class):
            inherited[place].append(item)
    for place, those in inherited.items():
        if any(map(_measures, those)) or _speaks_of_fixture(place):
            continue
        for item in those:
            item.stash[_idle] = f"{place.name} is marked with toolshift and none of its tests takes"


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Lets a test that is marked fail where it would measure nothing."""
    who = item.stash.get(_idle, "")
    if who:
        pytest.fail(
            f"{who} the fixture {FIXTURE}, so no agent is run and nothing is measured: take it, as "
            f"in `def test_agent({FIXTURE}): {FIXTURE}.assert_no_worse()`, or remove the mark "
            "toolshift",
            pytrace=False,
        )


def _is_marked(node: Any) -> bool:
    return any(mark.name == MARKER for mark in node.own_markers)


def _measures(item: pytest.Item) -> bool:
    return FIXTURE in getattr(item, "fixturenames", ())


def _speaks_of_fixture(place: pytest.Module | pytest.Class) -> bool:
    """Whether the code of a module or a class names the fixture: a test of it was not chosen."""
    try:
        return FIXTURE in inspect.getsource(place.obj)
    except (OSError, TypeError):
        return False


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each tier, shift or dimension that the marker asks for."""
    if FIXTURE not in metafunc.fixturenames:
        return
    try:
        labels = load(f"{RUNS}:labels_of")(_asked(metafunc.definition))
    except (Exception, SystemExit):
        labels = ["setup"]  # the fixture says what is wrong, and other tests are left alone
    metafunc.parametrize(FIXTURE, labels, indirect=True)


@pytest.fixture
def shift_result(request: pytest.FixtureRequest) -> ShiftResult:
    """What the run of the marker found out about one tier, shift or dimension.

    The agent is run once in a session, however many tests ask.
    """
    mistake = ""
    try:
        result_of = load(f"{RUNS}:result_of")
        found: ShiftResult | None = result_of(_asked(request.node), request.param, request.config)
    except UsageError as wrong:
        mistake = str(wrong)
    except (Exception, SystemExit) as fault:
        mistake = f"the run cannot be made or read: {described(fault)}"
    if mistake:  # not inside of the handler, or both errors would be shown
        pytest.fail(mistake, pytrace=False)
    if found is None:
        pytest.skip(f"the plan has no scene of {request.param}")
    return found


def _asked(node: Any) -> Asked:
    """The markers of a test; what is nearer to the test overrides what is farther."""
    words: dict[str, Any] = {}
    for marker in reversed(list(node.iter_markers(MARKER))):
        if len(marker.args) > 1:
            raise UsageError(
                "in the marker toolshift only the agent may be given without a name: name "
                f"{marker.args[1]!r}, as in suite='standard'"
            )
        words |= dict(zip(("agent",), marker.args, strict=False)) | dict(marker.kwargs)
    asked: Asked = load(f"{RUNS}:read_asked")(words, node.config)
    return asked
