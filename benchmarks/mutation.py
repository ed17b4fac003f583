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
EPISODE = ("tests/episode", "tests/core/test_core.py")
AGENTS = ("tests/strangers/test_causes.py", "tests/agents/test_blind.py")
TESTS: dict[str, tuple[str, ...]] = {
    "episode.episode": (*EPISODE, "tests/runs/test_format_1.py"),
    "episode.grade": (*EPISODE, "tests/runs/test_format_1.py"),
    "episode.grading_rules": (*EPISODE,),
    "episode.causes": ("tests/episode", *AGENTS, "tests/agents/test_planted.py"),
    "episode.prose": (*EPISODE,),
    "measure.metrics": ("tests/measure/test_metrics.py",),
    "measure.statistics": ("tests/measure/test_statistics.py", "tests/measure/test_metrics.py"),
    "measure.exact": ("tests/measure/test_statistics.py",),
    "measure.gate": ("tests/measure/test_gate.py",),
    "measure.gating": ("tests/measure/test_gate.py",),
    "measure.diagnosis": ("tests/measure/test_metrics.py",),
    "measure.compare": ("tests/measure/test_compare.py", "tests/runs/test_run_folder.py"),
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
    before: str
    after: str
    outcome: str
    seconds: float


AS_GOOD = ("Eq_Is", "NotEq_IsNot", "Is_Eq", "IsNot_NotEq")
"""Operators left out: whether equal strings are one object is the interpreter's affair."""
NAMED: tuple[tuple[str, str, str, str], ...] = ()
EQUIVALENT: dict[str, str] = {}


def path_of(module: str) -> Path:
    """The file of a module of toolshift."""
    return SOURCE / "toolshift" / (module.replace(".", "/") + ".py")


def mutants_of(module: str, seed: int) -> list[Mutant]:
    """The mutants of a module: at each place one of each kind, chosen by the seed.

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
    found, seen = [], {ast.unparse(ast.parse(source))}
    for (line, column, kind), choices in sorted(places.items()):
        label = f"{module}:{line}:{column} {kind}"
        random.Random(f"{seed} {label}").shuffle(choices)
        for name, number in choices:
            changed = _mutate(source, name, number)
            plain = _plain(changed)
            if plain is None or plain in seen:
                continue
            seen.add(plain)
            found.append(_described(label, module, source, changed))
            break
    return found


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
    """All mutants of some modules, or a seeded sample of them."""
    every = [mutant for module in modules for mutant in mutants_of(module, seed)]
    if not sample or sample >= len(every):
        return every
    kept = set(random.Random(seed).sample(range(len(every)), sample))
    return [mutant for number, mutant in enumerate(every) if number in kept]


def named() -> list[Mutant]:
    """The mutants that are always tried."""
    found = []
    for name, module, old, new in NAMED:
        source = path_of(module).read_text()
        assert source.count(old) == 1, f"{name}: {old!r} is not once in {module}"
        found.append(Mutant(name, module, old, new, source.replace(old, new)))
    return found


def main() -> int:
    """Tries the mutants; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("modules", nargs="*", help=f"of {', '.join(TESTS)}")
    parser.add_argument("--sample", type=int, default=0, help="so many mutants; 0 for all")
    parser.add_argument("--seed", type=int, default=25)
    parser.add_argument("--json", type=Path, help="write the verdicts here")
    parser.add_argument("--log", type=Path, help="append each verdict as it is found")
    parser.add_argument("--least", type=float, default=85.0, help="percent that must be killed")
    options = parser.parse_args()
    os.chdir(ROOT)
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = tempfile.mkdtemp()
    sys.path[:0] = [str(SOURCE), str(ROOT), str(ROOT / "tests")]
    modules = options.modules or list(TESTS)
    those = named() + chosen(modules, options.sample, options.seed)
    preload()
    verdicts = []
    for module in dict.fromkeys(mutant.module for mutant in those):
        outcome, seconds = run_tests(module, path_of(module).read_text())
        print(f"{module}: its tests take {seconds:.1f} s", flush=True)
        if outcome != "survived":
            raise SystemExit(f"the tests of {module} fail without any mutant")
        for mutant in those:
            if mutant.module == module:
                found, seconds = run_tests(module, mutant.source)
                verdict = Verdict(
                    mutant.name, mutant.before, mutant.after, found, round(seconds, 2)
                )
                verdicts.append(verdict)
                if found == "survived":
                    print(f"  survived: {mutant.name}: {mutant.after}", flush=True)
                if options.log:
                    with options.log.open("ab") as log:
                        log.write(msgspec.json.encode(verdict) + b"\n")
    print(len(verdicts), sum(v.outcome != "survived" for v in verdicts))
    return 0


if __name__ == "__main__":
    sys.exit(main())
