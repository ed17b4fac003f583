"""Former versions of suites, so that what they measured can be measured again."""

from __future__ import annotations

from toolshift.runs.suite import OURS, SHIFTS_3, Suite

SHIFTS_1 = """
tool_name_noise semantic_rename identity_erasure semantic_trap parameter_rename schema_noise
description_paraphrase description_removal distractor_tools query_paraphrase query_typos
query_ambiguity query_underspecification query_redundancy format_drift missing_values
truncation verification_change transient_error permanent_error redirect tool_removed_midway
tool_added tool_migrated merged_tools split_tools reversed_order new_precondition
conflicting_sources incomplete_information unseen_domain rule_update intent_change fatal_error
fatal_error_lookalike tool_gone tool_gone_lookalike contradictory_request
contradictory_request_lookalike no_such_entity no_such_entity_lookalike
"""
"""The shifts of the suites `standard@1` and `paper@1`: those of release 0.2.0, in its order."""

SHIFTS_2 = tuple(name for name in SHIFTS_3 if name not in ("csv_results", "redirect_header"))
"""The shifts of the suites `standard@2` and `paper@2`."""

_WORLDS = ("poi", "medical", "retail")
_FIRST = tuple(f"{name}@1" for name in SHIFTS_1.split())
_QUICK = tuple(text.replace(":", "@1:") for text in OURS["quick@2"].shifts)

FORMER = (
    Suite(
        "standard@2",
        "standard without csv_results and redirect_header",
        _WORLDS,
        16,
        SHIFTS_2,
    ),
    Suite(
        "paper@2",
        "paper without csv_results and redirect_header",
        ("poi",),
        220,
        SHIFTS_2,
        rotate=True,
    ),
    Suite("quick@1", "quick as of release 0.2.0", ("poi",), 20, _QUICK, (2,)),
    Suite("standard@1", "standard as of release 0.2.0", _WORLDS, 16, _FIRST),
    Suite("paper@1", "paper as of release 0.2.0", ("poi",), 220, _FIRST, rotate=True),
)
OURS.update({suite.name: suite for suite in FORMER})
