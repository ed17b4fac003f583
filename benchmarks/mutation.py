"""Mutation testing of what grades and measures: ``make mutants``.

Each mutant is one small change of one module (another comparison, number, operator, a condition
turned round), made with the operators of cosmic-ray. The tests of that module are then run against
it, and stop at the first that fails: the mutant is *killed*. One that no test notices *survives*:
either a test is missing, or the change makes no difference (`EQUIVALENT`, each with its reason).

cosmic-ray's own runner starts an interpreter and imports everything for each mutant. Here a mutant
is a fork of a process that has imported the foreign libraries, and an import hook gives it the
changed source, so no file is written and a thousand mutants take minutes.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import msgspec

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
TOOL = ROOT / "build" / "mutants"
"""Where `make mutants` puts cosmic-ray; last on the path, so that it changes no other version."""
FROZEN = "tests/test_frozen_data.py"
TESTS: dict[str, tuple[str, ...]] = {
    "episode.episode": ("tests/episode/test_episode.py", "tests/core/test_core.py"),
    "episode.grade": ("tests/episode/test_grade.py", FROZEN),
    "episode.grading_rules": (
        "tests/episode/test_grading_rules.py",
        "tests/episode/test_answers.py",
        "tests/episode/test_grade.py",
    ),
    "episode.causes": ("tests/episode/test_causes.py",),
    "episode.call_watch": ("tests/episode/test_causes.py",),
    "reading.prose": ("tests/reading/test_prose.py", "tests/core/test_core.py"),
    "measure.metrics": ("tests/measure/test_metrics.py", FROZEN),
    "measure.statistics": ("tests/measure/test_statistics.py", FROZEN),
    "measure.power": ("tests/measure/test_power.py",),
    "measure.exact": ("tests/measure/test_exact.py",),
    "measure.gate": ("tests/measure/test_gate.py", FROZEN),
    "measure.gate_statistics": ("tests/measure/test_gate_statistics.py",),
    "measure.diagnosis": (
        "tests/measure/test_diagnosis.py",
        "tests/measure/test_metrics.py",
        FROZEN,
    ),
    "measure.compare": ("tests/measure/test_compare.py", FROZEN),
    "measure.two_runs": ("tests/measure/test_compare.py", FROZEN),
}
"""The tests that concern each module, the quickest first."""
SLOW = "not simulation and not processes and not lean"
"""Tests that start processes would not see the mutant."""
WAIT = 60.0
"""Seconds after which a mutant is taken to loop for ever, which a test would notice."""


class Mutant(msgspec.Struct, frozen=True):
    """One change of a module.

    Attributes:
        name: MODULE:LINE:COLUMN and the kind of change.
        source: the module's whole text with the change.
    """

    name: str
    module: str
    before: str
    after: str
    source: str


class Verdict(msgspec.Struct, frozen=True):
    """What became of a mutant: "killed", "survived", "timeout"; a timeout counts as killed."""

    name: str
    module: str
    before: str
    after: str
    outcome: str
    seconds: float

    @property
    def survived(self) -> bool:
        """Whether no test noticed."""
        return self.outcome == "survived"


AS_GOOD = ("Eq_Is", "NotEq_IsNot", "Is_Eq", "IsNot_NotEq")
"""Operators left out: whether equal strings are one object is the interpreter's affair."""
NAMED: tuple[tuple[str, str, str, str], ...] = (
    (
        "surplus writes allowed",
        "episode.grade",
        "return Counter(map(_key, effects_of(steps))) - allowed",
        "return Counter()",
    ),
    (
        "evidence of another subject accepted",
        "episode.grading_rules",
        "return shown and scene.looks_up(step.true)",
        "return shown",
    ),
    (
        "tied statistics: no exact limits where nearly all tasks are tied",
        "measure.statistics",
        "# equal but for arithmetic, as 0.1 + 0.2 and 0.3 are\n        return inf",
        "\n        return 0.0",
    ),
    (
        "tied statistics: values that differ by arithmetic only are not tied",
        "measure.exact",
        "np.append(values, added).round(12)",
        "np.append(values, added)",
    ),
    (
        "tied statistics: tied p values get different corrections",
        "measure.statistics",
        "np.maximum.accumulate(factors * adjusted[order])",
        "factors * adjusted[order]",
    ),
    (
        "gains and losses swapped in drops",
        "measure.statistics",
        "return _mean_interval(first - second,",
        "return _mean_interval(second - first,",
    ),
    (
        "gains and losses swapped in compare",
        "measure.compare",
        "change=st.paired_drop(after, before)",
        "change=st.paired_drop(before, after)",
    ),
    (
        "gains counted as losses in compare",
        "measure.compare",
        "if a.grade.passed and not b.grade.passed]",
        "if b.grade.passed and not a.grade.passed]",
    ),
    (
        "gains counted as losses in the gate",
        "measure.gate",
        "_passed(s.before) > _passed(s.after)]",
        "_passed(s.before) < _passed(s.after)]",
    ),
)
"""Mutants that are always tried: a name, the module, the text and what stands in its place."""
EQUIVALENT: dict[tuple[str, str], str] = {
    (
        "episode.grade",
        'if last is not None and last.kind >= "failure" and last.name == BROKEN_SHIFT:',
    ): "the only later kind is a refusal, whose name is one of four reasons",
    (
        "measure.exact",
        "width = 1 % sqrt(float(masses @ (gaps / (1 - saddle * gaps)) ** 2) + saddle**-2)",
    ): "another contour through the same saddle, with the same integral",
    (
        "measure.exact",
        "points, counts = np.unique(np.append(values, added).round( 11), return_counts=True)",
    ): "values that differ by arithmetic only are joined as well",
    (
        "measure.power",
        "if missing(1.0) <= 0:",
    ): "the power is never the wanted one to the last digit",
}
"""Mutants that change nothing which can be seen: module and changed line, and the reason."""


def path_of(module: str) -> Path:
    """The file of a module of toolshift."""
    return SOURCE / "toolshift" / (module.replace(".", "/") + ".py")


class Site(msgspec.Struct, frozen=True):
    """A place where a module can be changed in one way or several.

    Attributes:
        label: MODULE:LINE:COLUMN and the kind of change.
        choices: operators and which of their places it is, in the order in which they are tried.
    """

    label: str
    module: str
    choices: list[tuple[str, int]]


def sites_of(module: str, seed: int) -> list[Site]:
    """Where a module can be changed; at each place and kind of change one mutant is made.

    cosmic-ray replaces a comparison by every other one, and a sum by eleven operations; most of
    these are killed by the same test, and would only make the share of the killed look better.
    """
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator, operator_names

    source = path_of(module).read_text()
    nodes = list(ast_nodes(get_ast(source)))
    idle = _never_run(source)
    places: dict[tuple[int, int, str], list[tuple[str, int]]] = defaultdict(list)
    for name in sorted(operator_names()):
        operator = get_operator(name)
        if operator.arguments() or name.endswith(AS_GOOD):
            continue
        kind = name.partition("/")[2].split("_")[0]
        starts = [start for node in nodes for start, _ in operator().mutation_positions(node)]
        for number, (line, column) in enumerate(starts):
            if not any(first <= (line, column) < end for first, end in idle):
                places[line, column, kind].append((name, number))
    found = []
    for (line, column, kind), choices in sorted(places.items()):
        label = f"{module}:{line}:{column} {kind}"
        random.Random(f"{seed} {label}").shuffle(choices)
        found.append(Site(label, module, choices))
    return found


def mutant_at(site: Site) -> Mutant | None:
    """The first change there that is code, and another code than it was; None without one."""
    source = path_of(site.module).read_text()
    for name, number in site.choices:
        changed = _mutate(source, name, number)
        if _plain(changed) not in (None, _plain(source)):
            return _described(site.label, site.module, source, changed)
    return None


def _mutate(source: str, name: str, number: int) -> str:
    from cosmic_ray.ast import get_ast
    from cosmic_ray.mutating import MutationVisitor
    from cosmic_ray.plugins import get_operator

    visitor = MutationVisitor(number, get_operator(name)())
    return str(visitor.walk(get_ast(source)).get_code())


def _described(label: str, module: str, source: str, changed: str) -> Mutant:
    lines = zip(source.splitlines(), changed.splitlines(), strict=False)
    before, after = next((pair for pair in lines if pair[0] != pair[1]), ("", ""))
    return Mutant(label, module, before.strip(), after.strip(), changed)


def _plain(source: str) -> str | None:
    """The code without its layout; None where it is none."""
    try:
        return ast.unparse(ast.parse(source))
    except SyntaxError:
        return None


Place = tuple[int, int]


def _never_run(source: str) -> list[tuple[Place, Place]]:
    """Where code is never run: annotations, and what is under TYPE_CHECKING."""
    found: list[ast.expr | ast.stmt | None] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            everything = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            found += [node.returns, *(one.annotation for one in everything)]
        elif isinstance(node, ast.AnnAssign):
            found.append(node.annotation)
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            found.append(node)
    return [_span(each) for each in found if each is not None]


def _span(node: ast.expr | ast.stmt) -> tuple[Place, Place]:
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)


class _Changed(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Gives one module its changed source, before the real one is looked for."""

    def __init__(self, module: str, source: str) -> None:
        self.name = f"toolshift.{module}"
        self.source = source
        self.path = str(path_of(module))

    def find_spec(self, name: str, path: object = None, target: object = None):  # type: ignore[no-untyped-def]
        if name != self.name:
            return None
        return importlib.util.spec_from_loader(name, self, origin=self.path)

    def get_source(self, fullname: str) -> str:
        return self.source

    def get_filename(self, fullname: str) -> str:
        return self.path

    def exec_module(self, module) -> None:  # type: ignore[no-untyped-def]
        module.__file__ = self.path
        exec(compile(self.source, self.path, "exec"), module.__dict__)


def run_tests(module: str, source: str, wait: float = WAIT) -> tuple[str, float]:
    """Runs a module's tests against a source, in a fork.

    Returns:
        The outcome, and the seconds that it took.
    """
    start = time.perf_counter()
    child = os.fork()
    if child == 0:
        _be_tested(module, source)
    while time.perf_counter() - start < wait:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            return "survived" if code == 0 else "killed", time.perf_counter() - start
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "timeout", wait


def _be_tested(module: str, source: str) -> None:
    """In the fork: runs the tests and ends the process with their exit code."""
    import pytest

    os.setsid()
    quiet = os.open(os.devnull if not os.environ.get("LOUD") else "/dev/stderr", os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    chosen = [test for test in TESTS[module] if (ROOT / test).exists()]
    words = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-k", SLOW]
    try:
        # Imported before pytest, which would find the module for itself to rewrite its assertions.
        sys.meta_path.insert(0, _Changed(module, source))
        importlib.import_module(f"toolshift.{module}")
        code = int(pytest.main([*words, "--hypothesis-seed=0", *chosen]))
    except BaseException:
        code = 1
    os._exit(code)


def preload() -> None:
    """Imports what tests need and no mutant changes, once for all forks."""
    import click  # noqa: F401
    import hypothesis.strategies  # noqa: F401
    import jsonschema_rs  # noqa: F401
    import pytest  # noqa: F401
    import rich.table  # noqa: F401
    import scipy.optimize
    import scipy.stats  # noqa: F401

    assert "toolshift.measure" not in sys.modules


def chosen(modules: Sequence[str], sample: int, seed: int) -> list[Mutant]:
    """A mutant for each place in some modules, or for a seeded sample of the places."""
    every = [site for module in modules for site in sites_of(module, seed)]
    if sample and sample < len(every):
        kept = set(random.Random(seed).sample(range(len(every)), sample))
        every = [site for number, site in enumerate(every) if number in kept]
    return [mutant for site in every if (mutant := mutant_at(site)) is not None]


def named() -> list[Mutant]:
    """The mutants that are always tried."""
    found = []
    for name, module, old, new in NAMED:
        source = path_of(module).read_text()
        assert source.count(old) == 1, f"{name}: {old!r} is not once in {module}"
        found.append(Mutant(name, module, old, new, source.replace(old, new)))
    return found


def tally(verdicts: Sequence[Verdict]) -> dict[str, dict[str, float]]:
    """Killed and survived by module, and the percent killed: of all, and of those that matter."""
    found: dict[str, dict[str, float]] = {}
    for module in (*dict.fromkeys(each.module for each in verdicts), "all"):
        those = [each for each in verdicts if module in (each.module, "all")]
        killed = sum(each.outcome != "survived" for each in those)
        equal = sum((each.module, each.after) in EQUIVALENT for each in those if each.survived)
        found[module] = {
            "mutants": len(those),
            "killed": killed,
            "survived": len(those) - killed,
            "of_these_equivalent": equal,
            "killed_percent": round(100 * killed / len(those), 1),
            "killed_percent_of_the_others": round(100 * killed / max(1, len(those) - equal), 1),
        }
    return found


def trial(mutant: Mutant) -> Verdict:
    """Runs the tests of a mutant's module against it."""
    outcome, seconds = run_tests(mutant.module, mutant.source)
    found = Verdict(
        mutant.name, mutant.module, mutant.before, mutant.after, outcome, round(seconds, 2)
    )
    if found.survived:
        print(f"  survived: {found.name}: {found.after}", flush=True)
    return found


def main() -> int:
    """Tries the mutants; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("modules", nargs="*", help=f"of {', '.join(TESTS)}; all of them")
    parser.add_argument("--sample", type=int, default=0, help="so many of them; 0 for all")
    parser.add_argument("--seed", type=int, default=25)
    parser.add_argument("--json", type=Path, help="write the figures and the survivors here")
    parser.add_argument("--least", type=float, default=85.0, help="percent that must be killed")
    options = parser.parse_args()
    os.chdir(ROOT)
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = tempfile.mkdtemp()
    sys.path[:0] = [str(SOURCE), str(ROOT), str(ROOT / "tests")]
    sys.path.append(str(TOOL))
    modules = options.modules or list(TESTS)
    those = [each for each in named() if each.module in modules]
    those += chosen(modules, options.sample, options.seed)
    preload()
    verdicts: list[Verdict] = []
    for module in dict.fromkeys(mutant.module for mutant in those):
        outcome, seconds = run_tests(module, path_of(module).read_text())
        print(f"{module}: its tests take {seconds:.1f} s", flush=True)
        if outcome != "survived":
            raise SystemExit(f"the tests of {module} fail without any mutant")
        verdicts += [trial(mutant) for mutant in those if mutant.module == module]
        if options.json:  # after each module, for a run takes long and may be stopped
            options.json.write_text(json.dumps(record(verdicts, options), indent=1) + "\n")
    found = tally(verdicts)
    for module, row in found.items():
        print(module, row)
    return 0 if found["all"]["killed_percent"] >= options.least else 1


def record(verdicts: Sequence[Verdict], options: argparse.Namespace) -> dict[str, object]:
    """The figures and the survivors, with the command that makes them."""
    words = [*options.modules, *(["--sample", str(options.sample)] if options.sample else [])]
    names = {name for name, *_ in NAMED}
    return {
        "command": " ".join(["python benchmarks/mutation.py", *words, f"--seed {options.seed}"]),
        "modules": tally(verdicts),
        "named": {each.name: each.outcome for each in verdicts if each.name in names},
        "survived": [
            {
                "mutant": each.name,
                "line": each.before,
                "changed": each.after,
                "equivalent": EQUIVALENT.get((each.module, each.after), ""),
            }
            for each in verdicts
            if each.survived
        ],
    }


if __name__ == "__main__":
    sys.exit(main())
