"""Families of shifts for training, and the stacks that an entry of a mix stands for."""

from __future__ import annotations

from functools import lru_cache

from toolshift.core.errors import UsageError
from toolshift.core.names import unknown
from toolshift.core.registry import Registry
from toolshift.core.shift import SEVERITIES, TIERS, split_version
from toolshift.runs.cell import Stack
from toolshift.runs.suite import read_arms
from toolshift.shifts.registry import shifts as registered

OURS: dict[str, tuple[str, ...]] = {
    "EFP": ("transient_error", "permanent_error", "redirect"),
    "SBP": (
        "identity_erasure",
        "semantic_rename",
        "tool_name_noise",
        "parameter_rename",
    ),
    "SRP": ("description_paraphrase", "query_paraphrase", "schema_noise"),
    "formats": ("format_drift", "missing_values", "truncation", "verification_change"),
    "midway": ("tool_removed_midway", "tool_added", "tool_migrated"),
    "graph": ("merged_tools", "split_tools", "reversed_order", "new_precondition"),
    "limits": (
        "fatal_error",
        "fatal_error_lookalike",
        "tool_gone",
        "tool_gone_lookalike",
        "no_such_entity",
        "no_such_entity_lookalike",
        "contradictory_request",
        "contradictory_request_lookalike",
    ),
    "symbols": (
        "identity_erasure:3+tool_subset:1",
        "identity_erasure:3+tool_subset:2",
        "identity_erasure:3+tool_subset:1",
        "identity_erasure:3+tool_subset:2",
        "tool_name_noise:3+tool_subset:2",
        "parameter_rename:3+tool_subset:1",
    ),
    "diverse": ("placebo", "tool_subset", "placebo+tool_subset", "distractor_tools+placebo"),
}
"""Perturbations by family. EFP (error feedback), SBP (symbols) and SRP (semantics of descriptions)
are the three of the paper; `symbols` is SBP at full strength in lists of other order and length, so
that no place in the list stands for a tool; `limits` pairs each unsolvable scene with a solvable
one like it; `diverse` leaves names, results and solvability alone."""

TRAINING_FAMILIES: Registry[tuple[str, ...]] = Registry("family", {}, "toolshift.families", OURS)
"""Families by name. Packages that keep former versions register them as `NAME@VERSION`; draws are
derived from the name alone, so a former version differs in its shifts only."""

HELD_OUT = ("csv_results", "redirect_header")
"""Mechanisms for evaluation: no family has them, and no tier stands for them in training."""

PAFT = ("EFP", "SBP", "SRP", "limits")


@lru_cache(maxsize=256)
def stacks_of(entry: str, severity: int) -> tuple[Stack, ...]:
    """The stacks of shifts that an entry of a mix stands for, at one severity.

    Those of `HELD_OUT` are among them only where the entry names them.
    """
    name, colon, own = entry.partition(":")
    families = TRAINING_FAMILIES.all()
    if name not in families:
        known = {*families, *TIERS, "all", *registered()}
        for text in entry.partition("*")[0].split("+"):
            part = split_version(text.partition(":")[0])[0]
            if part in families:
                raise UsageError(
                    f"{part} in {entry} is a family, and + joins shifts: name its shifts "
                    f"({', '.join(families[part])}), or name families one by one"
                )
            if part not in known and ".json" not in part:
                raise UsageError(unknown("shift or family", part, known))
        stacks = (arm.shifts for arm in read_arms(entry, (severity,)))
        barred = {name for name in HELD_OUT if name not in entry}
        return tuple(s for s in stacks if barred.isdisjoint(applied.shift for applied in s))
    if colon and own not in map(str, SEVERITIES):
        raise UsageError(f"severity {own!r} of {entry}: it goes from 1 to 3")
    given = (int(own) if colon else severity,)
    return tuple(arm.shifts for text in families[name] for arm in read_arms(text, given))
