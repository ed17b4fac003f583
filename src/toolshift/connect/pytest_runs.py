"""The runs behind the pytest plugin: each is played once in a session and kept in a run folder."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest

from toolshift.agents.catalog import contestants, describe
from toolshift.api import run_spec
from toolshift.core.command_line import command
from toolshift.core.errors import UsageError, described
from toolshift.core.files import hold
from toolshift.core.names import unknown
from toolshift.core.terminal import progress
from toolshift.core.tool import JSON
from toolshift.dialects import DIALECTS
from toolshift.measure.compare import shifts_as_they_were
from toolshift.measure.gate import (
    CLEAN,
    GROUPINGS,
    MAX_VOID,
    OVERALL,
    Family,
    Gate,
    Rules,
    check_rules,
    in_percent,
    judge,
)
from toolshift.measure.metrics import TIER_ORDER, Measures
from toolshift.measure.nothing_lost import judge_losses, loss_in_words
from toolshift.measure.report import AgentReport
from toolshift.runs.cell import Cell
from toolshift.runs.execute import RunSpec, check_at_once
from toolshift.runs.plan import make_plan
from toolshift.runs.run_folder import RunFolder
from toolshift.runs.suite import ResolvedSelection, Selection, select

SELECTION = Selection.__struct_fields__
INCONCLUSIVE = ("fail", "skip", "xfail")
_played = pytest.StashKey[dict[str, "Played | UsageError"]]()
_session = pytest.StashKey[str]()


@dataclass(frozen=True)
class Asked:
    """What the markers of a test ask for.

    Attributes:
        selection: what is to be run; None where the markers do not say, and it is the baseline's.
        options: for `chat:` agents.
    """

    agent: Any
    by: str = "tier"
    baseline: Path | None = None
    baseline_agent: str = ""
    margin: float = 5.0
    max_void: float = MAX_VOID
    inconclusive: str = "fail"
    workers: int = 1
    concurrency: int | None = None
    selection: Selection | None = None
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Played:
    """A finished run, its report, and the verdicts of the gate that were asked for so far."""

    folder: RunFolder
    about: AgentReport
    gates: dict[tuple[object, ...], Gate] = field(default_factory=dict)

    def gate(self, asked: Asked, margin: float) -> Gate:
        """The verdict against the baseline; the gate is a second's work for a large run."""
        assert asked.baseline
        key = (asked.baseline, asked.baseline_agent, margin, asked.by, asked.max_void)
        if key not in self.gates:
            self.gates[key] = judge(
                RunFolder.read(asked.baseline),
                self.folder,
                Rules(margin, asked.by, asked.max_void),
                baseline_agent=asked.baseline_agent,
            )
        return self.gates[key]


@dataclass(frozen=True, repr=False)
class ShiftResult:
    """What a run found out about one tier, shift or dimension; rates lie in [0, 1].

    Attributes:
        label: "clean", the name of the tier, shift or dimension, or "overall".
        agent: the agent's name.
        measures: everything measured; see `toolshift.measure.metrics.Measures`.
        run: the run folder.
    """

    label: str
    agent: str
    measures: Measures
    run: Path
    _asked: Asked
    _played: Played

    def __repr__(self) -> str:
        told = f"{self.label}: {self.agent} passes {in_percent(self.accuracy) or 'nothing yet'}"
        if self.measures.void_matters:
            low, high = (in_percent(bound) for bound in self.bounds)
            told += f" ({low} with void episodes as failures, {high} as passes)"
        return f"<{told}>"

    @property
    def accuracy(self) -> float:
        """Mean over tasks of the share of its scored episodes that pass."""
        return self.measures.accuracy.estimate

    @property
    def bounds(self) -> tuple[float, float]:
        """Accuracy with void episodes as failures, and with them as passes."""
        return self.measures.bounds

    @property
    def drop(self) -> float:
        """Clean minus shifted accuracy on the same tasks; NaN where that is not defined."""
        return self.measures.drop.estimate

    def compared(self, margin: float | None = None) -> Family:
        """The verdict of the gate on these scenes, against the baseline."""
        asked = self._asked
        if asked.baseline is None:
            raise UsageError(
                "there is nothing to compare with: give the marker a baseline=RUN, or pytest "
                "--toolshift-baseline RUN"
            )
        gate = self._played.gate(asked, asked.margin if margin is None else margin)
        return next(family for family in gate.families if family.label == self.label)

    def assert_no_worse(self, margin: float | None = None) -> None:
        """Fails where the agent is worse than the baseline by more than a margin.

        What is inconclusive fails, is skipped or xfails, as the marker's `inconclusive` or the
        ini option `toolshift_inconclusive` says. What was not measured, because too many scenes are
        void or missing or the baseline passes too little, always fails; a tier, dimension or shift
        of which the baseline passes too little is skipped, as the gate leaves it out.
        """
        __tracebackhide__ = True
        family = self.compared(margin)
        if family.verdict == "pass":
            return
        lost = f"\nlost: {', '.join(family.examples)}" if family.examples else ""
        said = f"{self.agent} in {self.label}: {family.sentence}{lost}\nrun folder: {self.run}"
        if not family.gated:
            pytest.skip(said)
        if family.verdict == "inconclusive":
            _inconclusive(said, self._asked.inconclusive)
        raise AssertionError(said)

    def assert_nothing_lost(self) -> None:
        """Fails where a scene that always passed in the baseline fails now, beyond chance.

        It is the rule of `toolshift gate --nothing-lost`, for all scenes of the run, whatever the
        label of this test; what is inconclusive is treated as in `assert_no_worse`.
        """
        __tracebackhide__ = True
        asked = self._asked
        if asked.baseline is None:
            raise UsageError(
                "there is nothing to compare with: give the marker a baseline=RUN, or pytest "
                "--toolshift-baseline RUN"
            )
        found = judge_losses(
            RunFolder.read(asked.baseline),
            self._played.folder,
            baseline_agent=asked.baseline_agent,
            max_void=asked.max_void,
        )
        if found.verdict == "pass":
            return
        lines = [f"{self.agent}: {found.sentence}"]
        for scene in found.changed:
            lines.append(f"{loss_in_words(scene)}: {command('trace', self.run, scene.episode)}")
        said = "\n".join(lines)
        if found.verdict == "inconclusive":
            _inconclusive(said, asked.inconclusive)
        raise AssertionError(said)

    def assert_accuracy(self, least: float) -> None:
        """Fails where the agent passes less than a share, by the gate's rule of void episodes.

        It passes if the share is reached even with void episodes as failures, and fails if it is
        not even with them as passes. Between these it is inconclusive: it then fails, is skipped
        or xfails, as the marker's `inconclusive` or the ini option `toolshift_inconclusive` says.
        Where every episode is void, nothing was measured, which always fails.
        """
        __tracebackhide__ = True
        low, high = self.bounds
        measured = self.measures.void < self.measures.episodes
        if low >= least and measured:
            return
        said = f"{self!r} is under {least:.0%}\nrun folder: {self.run}"
        if high >= least:
            said = (
                f"{self!r} may be under {least:.0%}: {self.measures.void} void episodes decide\n"
                f"run folder: {self.run}"
            )
            if measured:
                _inconclusive(said, self._asked.inconclusive)
        raise AssertionError(said)


def _inconclusive(said: str, policy: str) -> None:
    __tracebackhide__ = True
    if policy == "skip":
        pytest.skip(said)
    if policy == "xfail":
        pytest.xfail(said)


def read_asked(words: dict[str, Any], config: pytest.Config) -> Asked:
    """Reads the arguments of the markers, and what the command line and the ini file add."""
    if "agent" not in words:
        raise UsageError(
            'mark the test with @pytest.mark.toolshift(agent="module:function"), or give the '
            "agent itself"
        )
    selected = {name: words[name] for name in SELECTION if name in words}
    own = {name: value for name, value in words.items() if name not in selected}
    fields = {name: own.pop(name) for name in _OWN if name in own}
    _check_chat_options(own, fields["agent"])
    if given := config.getoption("--toolshift-baseline"):
        fields["baseline"] = given
    if fields.get("baseline") is not None:
        fields["baseline"] = config.rootpath / fields["baseline"]
    asked = Asked(
        **{"inconclusive": config.getini("toolshift_inconclusive"), **fields},
        selection=Selection.of(**selected) if selected else None,
        options=own,
    )
    check_rules(Rules(asked.margin, asked.by, asked.max_void))
    check_at_once(asked.workers, asked.concurrency)
    if asked.inconclusive not in INCONCLUSIVE:
        raise UsageError(unknown("inconclusive", str(asked.inconclusive), INCONCLUSIVE))
    return asked


_OWN = (
    "agent", "by", "baseline", "baseline_agent", "margin", "max_void", "inconclusive", "workers",
    "concurrency",
)  # fmt: skip


def _check_chat_options(left: dict[str, Any], agent: Any) -> None:
    """Arguments of `ChatAgent` are for such agents; anything else is a slip of the pen."""
    if left and not (isinstance(agent, str) and agent.partition(":")[0] in DIALECTS.names()):
        known = (*SELECTION, *_OWN)
        raise UsageError(unknown("argument of the marker toolshift", next(iter(left)), known))


def labels_of(asked: Asked) -> list[str]:
    """The tests to make: clean, the tiers, shifts or dimensions of the selection, and overall."""
    key = GROUPINGS[asked.by]
    arms = _selection(asked).arms
    found = dict.fromkeys(key(Cell("", "", 0, 0, "", 0, arm.shifts)) for arm in arms)
    known = [label for label in TIER_ORDER if label in found]
    return list(dict.fromkeys([CLEAN, *known, *filter(None, found), OVERALL]))


def result_of(asked: Asked, label: str, config: pytest.Config) -> ShiftResult | None:
    """The result for one label; None where the plan turned out to have no such scene."""
    played = _once(asked, config)
    measures = _measures(played.about, asked.by, label)
    if measures is None:
        return None
    name, run = played.about.name, played.folder.path
    return ShiftResult(label, name, measures, run, asked, played)


def _measures(about: AgentReport, by: str, label: str) -> Measures | None:
    if label in (CLEAN, OVERALL):
        return about.clean if label == CLEAN else about.everything
    table: list[Measures] = getattr(about, f"{by}s")
    return next((row for row in table if row.label == label), None)


def _selection(asked: Asked) -> ResolvedSelection:
    """What is run: the baseline's selection, or that of the marker's arguments."""
    if asked.baseline is None:
        return select(asked.selection or Selection())
    theirs = RunFolder.read(asked.baseline).manifest.selection
    if asked.selection is not None:
        mine = select(asked.selection)
        other = [
            name for name in mine.__struct_fields__ if getattr(mine, name) != getattr(theirs, name)
        ]
        if other:
            raise UsageError(
                f"the baseline {asked.baseline} is of another selection ({', '.join(other)}): "
                "the scenes of the baseline are run, so leave these arguments out, or make a "
                "baseline with them"
            )
    return theirs


# -- playing -----------------------------------------------------------------------------------


def _once(asked: Asked, config: pytest.Config) -> Played:
    """The finished run, played now if no test of this session has asked for it before."""
    known = config.stash.setdefault(_played, {})
    key = repr((asked.agent, asked.baseline, asked.selection, asked.options))
    if key not in known:
        try:
            known[key] = _play(asked, config)
        except UsageError as wrong:
            known[key] = wrong  # for the other tests, which would only fail again
        except (Exception, SystemExit) as fault:  # an exit in an agent too
            known[key] = UsageError(f"the run broke off: {described(fault)}")
    found = known[key]
    if isinstance(found, UsageError):
        raise found
    return found


def _play(asked: Asked, config: pytest.Config) -> Played:
    selection = _selection(asked)
    those = contestants([asked.agent], asked.concurrency, **asked.options)
    described = JSON.encode((describe(those[0]), selection))
    slug = re.sub(r"[^A-Za-z0-9]+", "-", those[0].name).strip("-")[:40]
    name = f"{slug}-{blake2b(described, digest_size=4).hexdigest()}"
    base = _base(config)
    path = base / name
    with _locked(base / f".{name}.lock"):
        _make_way(path, base / f".{name}.session", config)
        if asked.baseline is None:
            plan = make_plan(selection)
        else:
            before = RunFolder.read(asked.baseline)
            before.require_code()
            shifts_as_they_were(before)
            plan = before.plan
        with _progress(config) as watch:
            report = run_spec(RunSpec(plan, those, path, workers=asked.workers), watch)
    return Played(RunFolder.read(path), report.agents[0])


def _base(config: pytest.Config) -> Path:
    """Where the run folders go: the same for all processes of a session."""
    given = config.getoption("--toolshift-out")
    cache = getattr(config, "cache", None)
    if given:
        base = config.invocation_params.dir / str(given)
    elif cache is not None:
        base = Path(cache.mkdir("toolshift"))
    else:
        base = Path(tempfile.gettempdir()) / f"toolshift-{_session_id(config)}"
    base.mkdir(parents=True, exist_ok=True)
    return base


def _session_id(config: pytest.Config) -> str:
    """The same in all processes of a session, another in the next."""
    worker = getattr(config, "workerinput", None)
    if worker is not None:
        return str(worker["testrunuid"])
    return config.stash.setdefault(_session, f"{os.getpid()}-{time.time_ns()}")


def _make_way(path: Path, stamp: Path, config: pytest.Config) -> None:
    """Removes what an earlier session has left; an agent may have changed in ways unseen."""
    mine = _session_id(config)
    before = stamp.read_text() if stamp.exists() else ""
    if path.exists() and not before:
        raise UsageError(f"{path} was not made by this plugin: name another --toolshift-out")
    if path.exists() and before != mine and not config.getoption("--toolshift-resume"):
        shutil.rmtree(path)
    stamp.write_text(mine)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One process plays; the others wait and then read what it has played."""
    with path.open("ab") as file:
        while True:
            try:
                hold(file, path)
                break
            except UsageError:
                time.sleep(0.2)
        yield


@contextmanager
def _progress(config: pytest.Config) -> Iterator[Any]:
    """The bar of the command line, past pytest's capturing."""
    capture = config.pluginmanager.getplugin("capturemanager")
    if capture is None:
        with progress("episodes") as watch:
            yield watch
        return
    with capture.global_and_fixture_disabled(), progress("toolshift: episodes") as watch:
        yield watch
