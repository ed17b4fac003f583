"""What the author of a shift does wrong is said in one sentence, with the file and the line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pages import imported
from running import Run

from toolshift.agents.planted import planted
from toolshift.core.errors import ShiftFault, UsageError
from toolshift.core.shift import declared
from toolshift.episode.draw import make_scene
from toolshift.episode.episode import Episode
from toolshift.episode.grade import grade
from toolshift.runs.check import Bench, Verdict, check_shift, oracle_fails
from toolshift.runs.plan import make_plan
from toolshift.runs.suite import Selection, select
from toolshift.shifts.registry import apply, check_name
from toolshift.worlds.registry import find_world

PAGE = "add-a-shift.md"
MAKE = "return Change(layer=Envelope(severity))"
LAST = "return result.with_(data=data, fields=fields)"
CALL = "    def call(self"
TOOLS = "    def tools(self, tools, memory):\n        "
APPLIED = [
    (MAKE, "return Envelope(severity)", r"returned Envelope, not a Change: return Change\(layer="),
    (MAKE, "Change(layer=Envelope(severity))", "returned None, not a Change"),
    (MAKE, "return Change(layer=Envelope)", r"is a class: write Envelope\(...\)"),
    (MAKE, "return Change(layer='it')", "layer is a toolshift.Layer or a tuple, not 'it'"),
    (MAKE, "return Change(asks='it')", "asks is a tuple, not 'it'"),
    (MAKE, "return Change(layers=())", "unexpected keyword argument 'layers'"),
    (
        MAKE,
        "from toolshift import Outcome; return Change(outcome=Outcome(refusal='not_fond'))",
        "unknown reason of a refusal 'not_fond': did you mean not_found",
    ),
    (MAKE, "return Change(asks=())", "returned no turn of the user: asks is empty"),
    ("def envelope(scene, rng, severity)", "def envelope(scene, rng)", "takes 2 positional"),
    ("def envelope(", "async def envelope(", "returned coroutine, not a Change"),
]
PLAYED = [
    (LAST, "result.with_(data=data)", "Envelope.call returned nothing: end it with a `return`"),
    (LAST, "return result.data", "Envelope.call returned .*, not a toolshift.Result"),
    ("result.data, result.fields", "result.dat, result.fields", "has no attribute 'dat'"),
    ("arguments, memory, below):", "arguments, below):", "positional arguments"),
    ("data=data, fields", "data=object(), fields", "cannot be written out"),
    ("data=data, fields", "form='yml', fields", "cannot be written out: 'yml'"),
    (CALL, TOOLS + "return ['a']\n\n" + CALL, "tools returned str among the tools"),
    (CALL, TOOLS + "pass\n\n" + CALL, "tools returned nothing"),
    (CALL, "    async def call(self", "Envelope.call returned coroutine, not a toolshift.Result"),
    (CALL, f"    async {TOOLS[4:]}pass\n\n{CALL}", "tools returned coroutine, not a tuple"),
    (CALL, f"    def phase(self, memory):\n        pass\n\n{CALL}", "phase returned nothing"),
]  # fmt: skip
IMPORTED = [
    ("depth: int", "phase: int", "Envelope.phase is a method of every layer"),
    ('tier="interaction"', 'tier="interacton"', "did you mean interaction"),
    ('observation")', "observation\", imitate='')", "unexpected keyword argument 'imitate'"),
]


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    """The shift is registered for one test alone."""
    before = dict(declared)
    yield
    for name in declared.keys() - before.keys():
        if not declared[name].rule.__module__.startswith("toolshift"):  # ours are imported once
            del declared[name]


@pytest.mark.parametrize(("old", "new", "said"), APPLIED, ids=[said for *_, said in APPLIED])
@pytest.mark.filterwarnings("error")
def test_a_wrong_change_is_said(old: str, new: str, said: str, tmp_path: Path) -> None:
    imported(tmp_path, PAGE, old, new)
    with pytest.raises(ShiftFault, match=rf"^shift envelope .*{said}.*\(page_\d+.py, line \d+\)$"):
        apply(make_scene(find_world("poi"), "listing", 0), "envelope", 2)


@pytest.mark.parametrize(("old", "new", "said"), PLAYED, ids=[said for *_, said in PLAYED])
@pytest.mark.filterwarnings("error")
def test_a_wrong_layer_is_said(old: str, new: str, said: str, tmp_path: Path) -> None:
    imported(tmp_path, PAGE, old, new)
    with pytest.raises(ShiftFault, match=rf"{said}.*\(page_\d+.py, line \d+\)$"):
        apply(make_scene(find_world("poi"), "listing", 0), "envelope", 2).rehearsal  # noqa: B018


@pytest.mark.parametrize(("old", "new", "said"), IMPORTED, ids=[said for *_, said in IMPORTED])
def test_a_wrong_declaration_is_said(old: str, new: str, said: str, tmp_path: Path) -> None:
    with pytest.raises((UsageError, TypeError), match=said):
        imported(tmp_path, PAGE, old, new)


def test_a_layer_that_forgets_the_fields_is_named(tmp_path: Path) -> None:
    imported(tmp_path, PAGE, LAST, "return result.with_(data=data)")
    (verdict,) = check_shift(Bench((find_world("poi"),), (), tasks=1), "envelope")
    assert (verdict.rule, verdict.state) == (4, "fail")
    assert "the fact 'place_id' is declared at 'place_id', where nothing stands" in verdict.detail
    assert "Envelope changes the data: it must move `fields` with it (page_" in verdict.detail
    plan = make_plan(select(Selection(shifts=("envelope",), tasks=1, placebo=False)))
    (broken,) = plan.skipped
    assert broken.broken
    assert "it must move `fields` with it" in broken.not_applicable


NO_SHIFT = [
    ("layer=Surface(names={t.name: 'same' for t in scene.tools})", "two tools are shown as 'same'"),
    ("layer=Surface(names={scene.tools[0].name: 'x y'})", "a tool is shown as 'x y': a name is"),
]


@pytest.mark.parametrize(("made", "said"), NO_SHIFT, ids=["same", "odd"])
def test_names_that_no_client_takes_are_broken_in_a_run_too(
    made: str, said: str, tmp_path: Path
) -> None:
    shift = f"named_{tmp_path.name}"
    change = f"from toolshift import Surface; return Change({made})"
    imported(tmp_path, PAGE, "def envelope(", f"def {shift}(", MAKE, change)
    plan = make_plan(select(Selection(worlds=("poi",), shifts=(shift,), tasks=1, placebo=False)))
    (broken,) = plan.skipped
    assert broken.broken
    assert re.search(rf"{said}.* \(page_\d+.py, line \d+\)$", broken.not_applicable)


def test_a_change_of_nothing_is_none_that_was_tried(tmp_path: Path) -> None:
    shift = f"nothing_{tmp_path.name}"
    imported(tmp_path, PAGE, "def envelope(", f"def {shift}(", MAKE, "return Change()")
    with pytest.raises(UsageError, match="it changes nothing here: let it raise NotApplicable"):
        make_plan(select(Selection(worlds=("poi",), shifts=(shift,), tasks=1)))


def test_the_name_of_a_family_is_refused(tmp_path: Path) -> None:
    imported(tmp_path, PAGE, "def envelope(", "def formats(")
    with pytest.raises(UsageError, match=r"'formats' \(page_.*ToolShift has a family of this name"):
        check_name(declared["formats"])


def test_a_name_of_ours_is_refused(tmp_path: Path) -> None:
    kept = declared.pop("redirect", None)
    try:
        imported(tmp_path, PAGE, "def envelope(", "def redirect(")
        with pytest.raises(UsageError, match=r"'redirect' \(page_.*ToolShift has a shift of this"):
            check_name(declared["redirect"])
    finally:
        del declared["redirect"]
        if kept is not None:
            declared["redirect"] = kept


MISTAKEN = [
    (
        '"error": {"code"',
        '"err": {"code"',
        'returned a failed Result with the data .*; wanted: {"er',
    ),
    ('hint=Hint("use", tool=name, arguments={"code": self.code})', 'hint="retry"', "hint is str,"),
    ('"use", tool=name, arguments', '"again", arguments', "unknown kind of hint 'again': did you"),
    ('"use", tool=name, arg', '"retry", arg', "'retry' takes no `arguments`; 'use' or 'page' does"),
    ('"use", tool=name, arg', '"use", arg', "a hint 'use' needs `tool`"),
]
UNPROVED = [
    (
        "            provoked=True,\n",
        "",
        "'unconfirmed', as if the agent had made a mistake: .* provoked=True",
    ),
    ("with code={self.code}", "with a code", r"'CF-\d+' is not in the shown text"),
    ("schema, required=False", "schema", "requires 'code', and nothing says its value: let a tool"),
]


def _made(folder: Path, *changes: str) -> str:
    """The name of a shift of the page that no test before has had: scenes are kept by it."""
    name = f"confirmed_{folder.name}"
    imported(folder, PAGE, "def confirmed(", f"def {name}(", *changes)
    return name


def _checked(folder: Path, *changes: str) -> list[Verdict]:
    return list(check_shift(Bench((find_world("poi"),), (), tasks=1), _made(folder, *changes)))


def test_the_same_call_with_more_is_made_and_read(tmp_path: Path) -> None:
    name = _made(tmp_path)
    verdicts = check_shift(Bench((find_world("poi"),), (), tasks=1), name)
    assert {verdict.state for verdict in verdicts} <= {"pass", "not tested"}
    scene = apply(make_scene(find_world("poi"), "listing", 0), name, 2)
    first, last = scene.calls[-2:]
    assert (first.error, first.hint, last.given) == (
        "unconfirmed",
        "use",
        {**first.given, "code": last.given["code"]},
    )
    renamed = apply(scene, "parameter_rename", 3)
    assert renamed.rehearsal[-1].said == scene.rehearsal[-1].said
    for agent, cause in (("gives_up", "no_recovery"), ("repeats_itself", "repetition")):
        episode = Episode(scene)
        planted(agent).play(episode)
        assert grade(episode).cause == cause


@pytest.mark.parametrize(("old", "new", "said"), MISTAKEN, ids=[said for *_, said in MISTAKEN])
def test_what_a_failure_lacks_is_said(old: str, new: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(ShiftFault, match=rf"Confirm.call .*{said}.*\(page_\d+.py, line \d+\)$"):
        _checked(tmp_path, old, new)


@pytest.mark.parametrize(("old", "new", "said"), UNPROVED, ids=[said for *_, said in UNPROVED])
def test_what_the_oracle_cannot_follow_is_said(
    old: str, new: str, said: str, tmp_path: Path
) -> None:
    (verdict,) = [each for each in _checked(tmp_path, old, new) if each.state == "fail"]
    assert re.search(said, verdict.detail)


NAMED = [
    ("'same'", 4, "two tools are shown as 'same'"),
    ("'it! ' + tool.name", 4, "a tool is shown as 'it! .*': a name is up to 64 letters"),
    ("f'tool{number}'", 6, "share the tool name 'tool.*'; let `scene.task.pool` decide"),
    ("tool.name.replace('_', '-')", 0, ""),
    ("tool.name.title().replace('_', '')", 0, ""),
]


@pytest.mark.parametrize(("name", "rule", "said"), NAMED, ids=[name for name, *_ in NAMED])
def test_names_are_ones_that_clients_take_and_differ_by_pool(
    name: str, rule: int, said: str, tmp_path: Path
) -> None:
    shift = f"named_{tmp_path.name}"
    names = f"names={{tool.name: {name} for number, tool in enumerate(scene.tools)}}"
    made = f"from toolshift import Surface; return Change(layer=Surface({names}))"
    imported(tmp_path, PAGE, "def envelope(", f"def {shift}(", MAKE, made)
    verdicts = check_shift(Bench((find_world("poi"),), (), tasks=1), shift)
    found = {each.rule: each.detail for each in verdicts if each.state == "fail"}
    found.pop(5, None)  # all of its severities are the same
    assert set(found) == ({rule} if rule else set())
    assert re.search(said, found.get(rule, ""))


SPENT = """
    from toolshift import Outcome

    class Spent(Confirm):
        def call(self, name, arguments, memory, below):
            error = {"code": "quota", "message": "The quota is used up. Nothing can be done."}
            spent = Result(False, {"error": error}, hint=Hint("fatal"), provoked=True)
            return spent if name == self.guarded else below(name, arguments)

        def tools(self, tools, memory):
            return tools

    layer = Spent(scene.calls[-1].name, "")
    return Change(layer=layer, outcome=Outcome(refusal="service_failure"))
"""


@pytest.mark.parametrize("forgiven", [False, True])
def test_a_write_before_a_refusal_is_forgiven_or_named(forgiven: bool, tmp_path: Path) -> None:
    made = 'refusal="service_failure"'
    spent = SPENT.replace(made, f"{made}, forgiven=scene.outcome.effects") if forgiven else SPENT
    old = '    return Change(layer=Confirm(scene.calls[-1].name, f"CF-{rng.randrange(1000)}"))\n'
    name = _made(tmp_path, old, spent, 'dimension="action", one', 'dimension="domain", preserves='
                 '"nothing", one')  # fmt: skip
    scene = apply(make_scene(find_world("retail"), "reserve_then_check", 0), name, 2)
    said = oracle_fails(scene)
    assert bool(said) != forgiven
    assert forgiven or "it writes 'reserve_stock " in said


def test_a_scene_that_the_oracle_cannot_solve_is_shown_as_one_sentence(
    tmp_path: Path, toolshift: Run
) -> None:
    name = _made(tmp_path, "with code={self.code}", "with a code")
    code, _, err = toolshift("show", "poi/listing", "--shift", name)
    assert code == 2
    assert "the oracle cannot solve poi/listing" in err
    assert "is not in the shown text" in err
    assert f"check {name}` says more" in err
