"""Former versions of shifts, kept so that what they measured can be measured again.

They are found as `NAME@VERSION` and are frozen: text and draws are those of release 0.2.0.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from toolshift.core.scene import Scene
from toolshift.core.shift import (
    SEVERITIES,
    Change,
    NotApplicable,
    Rule,
    Severity,
    Shift,
    declared,
)
from toolshift.core.tool import DESCRIPTION, NAME, Tool
from toolshift.shifts import action, dependency, query, sources, unsolvable, wording
from toolshift.shifts.registry import find_shift
from toolshift.shifts.surface import Surface


def former(name: str, rule: Rule | None = None) -> Shift:
    """Version 1 of a shift, with three severities; without a rule only its severities differ."""
    now = find_shift(name)
    kept = replace(now, name=f"{name}@1", version=1, rule=rule or now.rule, severities=SEVERITIES)
    return declared.setdefault(kept.name, kept)


def _semantic_rename(scene: Scene, rng: Random, severity: Severity) -> Change:
    """One synonym a word and pool."""
    hit = action.reach(scene, rng, severity, lambda t: action.reworded(t.name, scene) != t.name)
    return action.rename(scene, hit, lambda name: action.reworded(name, scene))


def _semantic_trap(scene: Scene, rng: Random, severity: Severity) -> Change:
    """In training the very names, else one synonym a word and pool."""

    def honest(tool: Tool) -> bool:
        return tool.channels >= {NAME, DESCRIPTION}

    def suggestion(name: str) -> str:
        other = action.reworded(name, scene)
        return other if other != name else action.noisy(name, scene, 1)

    ring = action.reach(scene, rng, severity, honest)
    rest = [tool for tool in scene.tools if honest(tool) and tool not in ring]
    if severity < 3 and rest:
        ring.append(rng.choice(rest))
    if len(ring) < 2:
        raise NotApplicable("there is no other tool whose name could mislead")
    rng.shuffle(ring)
    lent = {tool.name: ring[place - 1].name for place, tool in enumerate(ring)}
    if scene.task.pool != "train":
        free = action.free_names(scene)
        lent = {name: free(suggestion(other)) for name, other in lent.items()}
    channels = dict.fromkeys(lent, action.ONLY_DESCRIPTION)
    return action.change(Surface(names=lent, channels=channels))


def _distractor_tools(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Names with an affix; two forms a pool."""
    samples = action.observed(scene)
    likes = action.reach(scene, rng, 1 if severity == 1 else 2, lambda tool: tool.name in samples)
    forms = wording.TABLES["distractors"][scene.task.pool]
    forms = rng.sample(forms, len(forms) if severity > 2 else 1)
    free = action.free_names(scene)
    extra = {free(form["name"] % like.name): (like, form) for like in likes for form in forms}
    return action.beside(scene, rng, extra, samples)


def _query_paraphrase(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Nearer or further phrasings, by words that differ."""
    pool = scene.task.pool
    return query.say(scene, [query.rephrase(scene, ask, pool, severity, rng) for ask in scene.asks])


def _query_ambiguity(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Fewer values where there are not so many."""
    return query.leave_out(scene, rng, severity, query.vaguely(scene, rng), fewer=True)


def _query_underspecification(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Fewer values where there are not so many."""
    return query.leave_out(scene, rng, severity, query.missing(scene, rng), fewer=True)


def _query_redundancy(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Idle chatter."""
    return query.amid(scene, rng, "chatter", 2 * severity - 1)


def _merged_tools(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Names of any length."""
    said = dependency.words("merged", scene, rng)
    return dependency.merged(
        scene, rng, severity, said, lambda a, b: str(said["name"].format(a=a, b=b))
    )


semantic_rename_1 = former("semantic_rename", _semantic_rename)
semantic_trap_1 = former("semantic_trap", _semantic_trap)
distractor_tools_1 = former("distractor_tools", _distractor_tools)
query_paraphrase_1 = former("query_paraphrase", _query_paraphrase)
query_ambiguity_1 = former("query_ambiguity", _query_ambiguity)
query_underspecification_1 = former("query_underspecification", _query_underspecification)
query_redundancy_1 = former("query_redundancy", _query_redundancy)
merged_tools_1 = former("merged_tools", _merged_tools)
reversed_order_1 = former("reversed_order", dependency.reversals)
incomplete_information_1 = former("incomplete_information", sources.forgotten)
tool_gone_1 = former("tool_gone")
tool_gone_lookalike_1 = former("tool_gone_lookalike")
contradictory_request_1 = former("contradictory_request", unsolvable.contradicting)
clear_up_1 = former("contradictory_request_lookalike", unsolvable.clearing_up)

FORMER = frozenset(
    {
        "semantic_rename@1",
        "semantic_trap@1",
        "distractor_tools@1",
        "query_paraphrase@1",
        "query_ambiguity@1",
        "query_underspecification@1",
        "query_redundancy@1",
        "merged_tools@1",
        "reversed_order@1",
        "incomplete_information@1",
        "tool_gone@1",
        "tool_gone_lookalike@1",
        "contradictory_request@1",
        "contradictory_request_lookalike@1",
    }
)
"""The names of these versions."""
