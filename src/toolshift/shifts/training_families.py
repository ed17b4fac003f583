"""Families of shifts for training: what `--shift EFP` stands for."""

from __future__ import annotations

from toolshift.core.registry import Registry, no_such

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
    "options": (
        "varied_options",
        "idle_sentences",
        "varied_options+idle_sentences",
        "varied_options+idle_sentences",
    ),
    "parameters": (
        "opaque_parameters",
        "opaque_parameters+identity_erasure",
        "opaque_parameters+varied_options+idle_sentences",
    ),
    "diverse": ("placebo", "tool_subset", "placebo+tool_subset", "distractor_tools+placebo"),
}
"""Perturbations by family. EFP (error feedback), SBP (symbols) and SRP (semantics of descriptions)
are the three of the paper; `symbols` is SBP at full strength in lists of other order and length, so
that no place in the list stands for a tool; `limits` pairs each unsolvable scene with a solvable
one like it; `options` are parameters that are to be left out, and idle sentences, which broke a
model that was trained without it; `parameters` gives them names that say nothing, alone, with such
names of tools, and beside options; `diverse` leaves names, results and solvability alone."""

TRAINING_FAMILIES: Registry[tuple[str, ...]] = Registry(
    "family", {}, "toolshift.families", OURS, wrong=no_such(tuple, "tuple of shifts"), modules=True
)
"""Families by name. Packages that keep former versions register them as `NAME@VERSION`; draws are
derived from the name alone, so a former version differs in its shifts only."""

HELD_OUT = (
    "csv_results",
    "redirect_header",
    "crowded_list",
    "tool_search",
    "concurrency_limit",
)
"""Mechanisms for evaluation: no family has them, and no tier stands for them in training."""

PAFT = ("EFP", "SBP", "SRP", "options", "parameters", "limits")
