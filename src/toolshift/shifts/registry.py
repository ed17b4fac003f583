"""Finds shifts by name, applies and composes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from random import Random

import msgspec

from toolshift.core import seed as seeds
from toolshift.core.errors import (
    IN_THE_LAB,
    ShiftFault,
    UsageError,
    defined_at,
    described,
    kind_of,
    place_of,
    placed,
)
from toolshift.core.layer import Layer
from toolshift.core.plugins import load_all, undecorated
from toolshift.core.registry import Registry
from toolshift.core.scene import Applied, Scene
from toolshift.core.shift import (
    SEVERITIES,
    Change,
    NotApplicable,
    Severity,
    Shift,
    Unproved,
    declared,
    split_version,
)
from toolshift.core.step import Step
from toolshift.episode.episode import End
from toolshift.episode.grade import regrade
from toolshift.shifts import facts
from toolshift.shifts.training_families import TRAINING_FAMILIES

UNPROVED = "under it, what the task expects to be called does not pass the task's own check"
UNPROVEN = "together with the shifts before it, it makes a scene that the oracle cannot solve"
_ENDS: dict[str, End] = {"answer": "answered", "refuse": "refused"}
"""How a rehearsal has ended, by the kind of its last step."""

OURS = {
    "tool_name_noise": "toolshift.shifts.action:tool_name_noise",
    "semantic_rename": "toolshift.shifts.action:semantic_rename",
    "identity_erasure": "toolshift.shifts.action:identity_erasure",
    "semantic_trap": "toolshift.shifts.action:semantic_trap",
    "parameter_rename": "toolshift.shifts.action:parameter_rename",
    "opaque_parameters": "toolshift.shifts.action:opaque_parameters",
    "schema_noise": "toolshift.shifts.action:schema_noise",
    "description_paraphrase": "toolshift.shifts.action:description_paraphrase",
    "description_removal": "toolshift.shifts.action:description_removal",
    "distractor_tools": "toolshift.shifts.action:distractor_tools",
    "tool_subset": "toolshift.shifts.action:tool_subset",
    "varied_options": "toolshift.shifts.options:varied_options",
    "idle_sentences": "toolshift.shifts.options:idle_sentences",
    "crowded_list": "toolshift.shifts.crowded:crowded_list",
    "query_paraphrase": "toolshift.shifts.query:query_paraphrase",
    "query_typos": "toolshift.shifts.query:query_typos",
    "query_ambiguity": "toolshift.shifts.query:query_ambiguity",
    "query_underspecification": "toolshift.shifts.query:query_underspecification",
    "query_redundancy": "toolshift.shifts.query:query_redundancy",
    "placebo": "toolshift.shifts.query:placebo",
    "format_drift": "toolshift.shifts.observation:format_drift",
    "csv_results": "toolshift.shifts.observation:csv_results",
    "missing_values": "toolshift.shifts.observation:missing_values",
    "truncation": "toolshift.shifts.observation:truncation",
    "verification_change": "toolshift.shifts.observation:verification_change",
    "transient_error": "toolshift.shifts.interruption:transient_error",
    "permanent_error": "toolshift.shifts.interruption:permanent_error",
    "redirect": "toolshift.shifts.interruption:redirect",
    "concurrency_limit": "toolshift.shifts.concurrency:concurrency_limit",
    "redirect_header": "toolshift.shifts.interruption:redirect_header",
    "tool_removed_midway": "toolshift.shifts.interruption:tool_removed_midway",
    "tool_added": "toolshift.shifts.interruption:tool_added",
    "tool_migrated": "toolshift.shifts.interruption:tool_migrated",
    "type_change": "toolshift.shifts.arguments:type_change",
    "enum_change": "toolshift.shifts.arguments:enum_change",
    "default_change": "toolshift.shifts.arguments:default_change",
    "default_change_placebo": "toolshift.shifts.arguments:default_change_placebo",
    "required_parameter": "toolshift.shifts.arguments:required_parameter",
    "tools_by_action": "toolshift.shifts.toolset:tools_by_action",
    "tools_behind_search": "toolshift.shifts.toolset:tools_behind_search",
    "tool_search": "toolshift.shifts.tool_search:tool_search",
    "stale_tool_list": "toolshift.shifts.toolset:stale_tool_list",
    "unit_change_placebo": "toolshift.shifts.units:unit_change_placebo",
    "unit_change": "toolshift.shifts.units:unit_change",
    "merged_tools": "toolshift.shifts.dependency:merged_tools",
    "split_tools": "toolshift.shifts.dependency:split_tools",
    "reversed_order": "toolshift.shifts.dependency:reversed_order",
    "new_precondition": "toolshift.shifts.dependency:new_precondition",
    "conflicting_sources": "toolshift.shifts.sources:conflicting_sources",
    "incomplete_information": "toolshift.shifts.sources:incomplete_information",
    "unseen_domain": "toolshift.shifts.domain:unseen_domain",
    "rule_update": "toolshift.shifts.domain:rule_update",
    "intent_change": "toolshift.shifts.domain:intent_change",
    "fatal_error": "toolshift.shifts.unsolvable:fatal_error",
    "fatal_error_lookalike": "toolshift.shifts.unsolvable:fatal_error_lookalike",
    "tool_gone": "toolshift.shifts.unsolvable:tool_gone",
    "tool_gone_lookalike": "toolshift.shifts.unsolvable:tool_gone_lookalike",
    "contradictory_request": "toolshift.shifts.unsolvable:contradictory_request",
    "contradictory_request_lookalike": (
        "toolshift.shifts.unsolvable:contradictory_request_lookalike"
    ),
    "no_such_entity": "toolshift.shifts.unsolvable:no_such_entity",
    "no_such_entity_lookalike": "toolshift.shifts.unsolvable:no_such_entity_lookalike",
    "crowded_list_*": "toolshift.shifts.crowded:of_number",
    "*.json": "toolshift.shifts.release.file:find_file_shift",
    "*@*": "toolshift.shifts.release.file:find_file_shift",
}
"""Every shift that ships with ToolShift, and what reads those that are files. Former versions go by
`NAME@VERSION`; packages that keep some register them in the entry-point group."""


def _load_plugins() -> None:
    """Imports the plugins that are named, for the shifts that they register."""
    load_all()
    for name in tuple(declared):
        check_name(declared[name])


def check_name(shift: Shift) -> None:
    """Checks that a shift has no name of ours, and none that stands for several shifts."""
    if shift.rule.__module__.startswith("toolshift."):
        return
    families = TRAINING_FAMILIES.names()
    known = "a shift" if shift.name in OURS else "a family" if shift.name in families else ""
    if known:
        place = placed(f"shift {shift.name!r}", defined_at(shift.rule))
        raise UsageError(f"{place}: ToolShift has {known} of this name already; choose another")


def _no_shift(thing: object) -> str:
    """What is wrong with what an entry point names, where no shift of that name came with it."""
    own = next((shift.name for shift in declared.values() if shift.rule is thing), "")
    if own:
        return f"is the shift {own!r}: the entry point has to have that name"
    return (
        f"is of type {type(thing).__name__}, and no shift: put @shift(tier=..., dimension=...) "
        "over the function"
    )


SHIFTS: Registry[Shift] = Registry(
    "shift", OURS, "toolshift.shifts", declared, _load_plugins, _no_shift, True
)


def shifts() -> dict[str, Shift]:
    """Every shift of today by name: ours, and those of installed plugins; no former versions."""
    return {name: SHIFTS.find(name) for name in SHIFTS.names() if not split_version(name)[1]}


def find_shift(name: str) -> Shift:
    """The shift of this name, or of a file that `toolshift shift from-diff` has written.

    A file is named by its path; from then on it goes by its name and a hash, `monday@1f2e3d4c`, so
    that no path stands in what is stored. A name alone is the version of today, which goes by it;
    `redirect@1` is version 1, whether or not there is a later one.
    """
    if name in facts.known and not has_code(name):
        return facts.known[name]
    base, version = split_version(name)
    if not version or name in SHIFTS.names():
        try:
            return SHIFTS.find(name)
        except UsageError:
            if advice := undecorated(name):
                raise UsageError(advice) from None
            raise
    today = SHIFTS.find(base)
    if today.version != version:
        kept = [split_version(known)[1] for known in SHIFTS.names() if known.startswith(f"{base}@")]
        there = ", ".join(map(str, sorted({*kept, today.version})))
        lab = f" ({IN_THE_LAB})" if version < today.version else ""
        raise UsageError(f"unknown shift {name!r}: versions of {base}: {there}{lab}")
    return today


def has_code(name: str) -> bool:
    """Whether a shift can be applied here; of one that a run keeps only the facts it is not so."""
    return name not in facts.known or name in SHIFTS.names()


def know_versions(versions: Mapping[str, int]) -> None:
    """Lets the versions of shifts that a run names be found, for what is declared of them alone.

    A version that is not installed declares what today's does: to read a run takes no more.
    """
    for name, version in versions.items():
        base = split_version(name)[0]
        there = SHIFTS.names()
        if not version or base not in there or f"{base}@{version}" in there:
            continue
        today = SHIFTS.find(base)
        if today.version != version:
            changed = msgspec.structs.replace(
                facts.facts_of(today), name=f"{base}@{version}", version=version
            )
            facts.know_facts([msgspec.structs.replace(changed, severities=SEVERITIES)])


def why_no_code(name: str) -> str:
    """What to say of a shift that cannot be applied here: what is missing, and where it is."""
    base, version = split_version(name)
    if not version or base not in OURS:
        return (
            f"the code of the shift {name} is not loaded: name its file with "
            "`toolshift --plugin FILE.py`"
        )
    if version > SHIFTS.find(base).version:
        return f"the shift {name} is of a newer ToolShift: upgrade"
    return f"the code of the shift {name} is not installed: {IN_THE_LAB}"


def as_stored(name: str, version: int) -> str:
    """The name today of a shift that was stored by its name and version.

    Where the version is not kept, it is the name as stored.
    """
    versioned = f"{name}@{version}"
    if version and versioned in SHIFTS.names():
        return versioned
    if versioned in facts.known and find_shift(name).version != version:
        return versioned
    return name


def file_contents(names: Iterable[str]) -> dict[str, bytes]:
    """The files of those of some shifts that were made from one."""
    contents = {name: find_shift(name).file for name in names}
    return {name: content for name, content in contents.items() if content}


def apply(
    scene: Scene, name: str, severity: int, draw: str = "", place: int | None = None
) -> Scene:
    """Applies a shift to a scene.

    Args:
        scene: the scene as it stands.
        name: of the shift.
        severity: 1 to 3.
        draw: what its random choices are derived from; the task where nothing is given. Scenes
            under one draw are shown the same new names, as far as they need the same tools.
        place: the number that its choices are derived from beside that; where None, how many shifts
            the scene has been through.

    Returns:
        A new scene; the one given stays as it is.

    Raises:
        NotApplicable: where that cannot be done truthfully, or where the stack would leave a
            tool with nothing that identifies it.
        Unproved: where a task over somebody else's tools can no longer be solved.
        ShiftFault: where the code of the shift fails.
        UsageError: for an unknown shift or severity.
    """
    shift = find_shift(name)
    severity = check_severity(shift, severity)
    _one_end_only(scene, shift)
    why = scene.not_applicable_reason(shift)
    if why:
        raise NotApplicable(why)
    number = len(scene.shifts) if place is None else place
    rng = seeds.rng(draw or scene.task.id, shift.base, severity, number, "shift")
    change = _change(shift, scene, rng, severity)
    layers = scene.layers
    for layer in change.layer if isinstance(change.layer, tuple) else (change.layer,):
        taken = layer.slots & {slot for below in layers for slot in below.slots}
        if taken:
            raise NotApplicable(f"{', '.join(taken)} is already changed")
        layers = (*layers, layer)
    shifted = scene.with_(
        layers=layers, shifts=(*scene.shifts, Applied(shift.name, severity)), **change.edits()
    )
    for tool in shifted.tools:
        if not tool.channels:
            raise NotApplicable(f"nothing would be left that tells what {tool.name} does")
    drawn = bool(scene.asks) and scene.world.traceable and not scene.world.counts
    if drawn and scene.shifts:
        _prove(shifted)
    if shifted.own_tools:
        _prove_own(shifted)
    return shifted


def _change(shift: Shift, scene: Scene, rng: Random, severity: Severity) -> Change:
    """What a shift returns for a scene."""
    try:
        change: object = shift.rule(scene, rng, severity)
    except (NotApplicable, ShiftFault, UsageError):
        raise
    except Exception as fault:
        fault_text = f"shift {shift.name} raised {described(fault)}"
        raise ShiftFault(placed(fault_text, place_of(fault) or defined_at(shift.rule))) from fault
    if isinstance(change, Change):
        if change.asks == () and scene.asks:  # a server that is shifted live has no turns at all
            fault_text = f"shift {shift.name} returned no turn of the user: asks is empty"
            raise ShiftFault(placed(fault_text, defined_at(shift.rule)))
        return change
    what, advice = kind_of(change), ""
    if isinstance(change, Layer):
        advice = f": return Change(layer={what}(...))"
    elif change is None:
        what, advice = "None", ": end it with `return Change(...)`"
    fault_text = f"shift {shift.name} returned {what}, not a Change{advice}"
    raise ShiftFault(placed(fault_text, defined_at(shift.rule)))


def _prove(scene: Scene) -> None:
    """Refuses a composition that the oracle neither solves nor rightly refuses.

    One shift by itself is not held against it here: that it breaks no scene is for `toolshift
    check` to find, and must not pass for a scene that it cannot be applied to.
    """
    if not _is_proved(scene, scene.rehearsal):
        raise NotApplicable(UNPROVEN)


def _is_proved(scene: Scene, steps: Sequence[Step]) -> bool:
    verdict = regrade(scene, steps, _ENDS.get(steps[-1].kind, "budget") if steps else "budget")
    return verdict.passed and (verdict.solvable or verdict.right_reason)


def _prove_own(scene: Scene) -> None:
    """Refuses a scene over somebody else's tools that the oracle cannot solve.

    It costs a walk over the results that are kept of the expected calls; no tool is called.
    """
    try:
        steps = scene.rehearsal
    except Exception:  # the shift itself is broken, and whoever plays the scene says how
        return
    if not _is_proved(scene, steps):
        raise Unproved(UNPROVED)


def check_severity(shift: Shift, severity: int) -> Severity:
    """The severity, if the shift has it; a shift from a file is the same at every severity."""
    for known in shift.severities:
        if known == severity or (shift.file and severity in SEVERITIES):
            return known
    if severity in SEVERITIES:
        raise UsageError(
            f"severity {severity} of {shift.name}: it has one level; write {shift.name} alone"
        )
    raise UsageError(f"severity {severity} of {shift.name}: it goes from 1 to 3")


def _one_end_only(scene: Scene, shift: Shift) -> None:
    """Refuses a second change of the outcome, on top of an unseen domain if need be."""
    before = (find_shift(applied.shift) for applied in scene.shifts)
    if shift.preserves == "end_state":
        return
    for other in before:
        if other.preserves != "end_state" and other.order > 0:
            raise NotApplicable(f"{other.name} has changed the outcome already")


def compose(scene: Scene, stack: Iterable[Applied], draw: str = "") -> Scene:
    """Applies several shifts, the deepest first whatever the order they are named in.

    `draw` is as for `apply`.

    Args:
        scene: as it stands.
        stack: the shifts.
        draw: what random choices are derived from.

    Returns:
        A new scene under all of them.

    Raises:
        NotApplicable: where one of them cannot be applied to what the others have made.
    """
    for applied in sorted(
        stack,
        key=lambda applied_shift: (find_shift(applied_shift.shift).order, applied_shift.shift),
    ):
        scene = apply(scene, applied.shift, applied.severity, draw)
    return scene
