"""The studies that `toolshift reproduce` runs, as data: which arms are trained, and what is asked.

Each study answers a question of the research by training several arms on the same tasks, and
measuring every one of them in the same clean and shifted scenes. An arm that several studies name
is trained once.
"""

from __future__ import annotations

from typing import Any

import msgspec

from toolshift.core.errors import UsageError
from toolshift.core.names import unknown
from toolshift.train.presets import PRESETS
from toolshift_lab.arm import SHORT, Arm, Scale

KINDS = ("listing", "hours", "route", "visit")
"""Chains of lookups. With `alert` and `booking`, which need a choice, static training reached 83%
of clean scenes and not the 90% that the controls ask for: `studies/history.md`."""
SCALES: dict[str, Scale] = {
    "smoke": Scale(("listing",), 12, 2, 2, evidence=False),
    # From its 100th step on, the loss of clean training is 0.0005 on average: it has learned all.
    # The layout is the preset's from before `spaced-texts` was found to be better (`copying`).
    "small": Scale(KINDS, 1200, 14, 8, clean=900, layout="description-first"),
    "paper": Scale((), 6050, 400, 220),
}
assert SCALES.keys() == PRESETS.keys()

TIER_1 = ("identity_erasure:3", "semantic_rename:3", "semantic_trap:3", "distractor_tools:2")
TIER_2 = ("redirect:2", "transient_error:2", "format_drift:2", "tool_migrated:2")
TIER_3 = ("merged_tools:2", "split_tools:2", "reversed_order:2", "new_precondition:2")
TIER_4 = (
    "fatal_error:2", "fatal_error_lookalike:2", "no_such_entity:2", "no_such_entity_lookalike:2",
    "tool_gone:2", "tool_gone_lookalike:2",
)  # fmt: skip
COMPOSED = ("identity_erasure:3+redirect:2", "semantic_rename:3+transient_error:2")
PROBES = (*TIER_1, *TIER_2, *TIER_3, *TIER_4)
"""What every arm meets: four shifts of each tier, and three limits with their look-alikes."""

TRAINED_ON = ("identity_erasure", "semantic_rename", "redirect", "transient_error")
HELD_OUT = ("semantic_trap", "format_drift", "tool_migrated")
"""Of tiers 1 and 2: what PAFT trains on, in other wordings, and what no arm of `contrast` meets;
`distractor_tools` is neither, for `diverse` trains on it."""

RENAMED = ("identity_erasure:3", "identity_erasure:3", "semantic_rename@1:3", "tool_name_noise:3")
PAFT_MIX = (*4 * ("symbols",), "SBP:3", "EFP", "EFP", "EFP", "SRP", "limits", "limits")
"""Nearly half renames everything, for reading names is what a small model learns last; mostly in
lists of another order, for where the order never changes it reads by place."""
RL_MIX = ("symbols", "EFP", "EFP", "limits", "limits", "limits")
"""Half of it limits, of which half are unsolvable: in a fifth of the scenes a refusal is paid."""
WIDE = (*2 * ("formats", "midway"), *3 * ("graph",), "fatal_error", "fatal_error_lookalike")
"""Fatal errors are those limits that PAFT learned worst: they come after errors that pass."""
ALL = (*2 * ("formats", "midway", "diverse"), *3 * ("graph",), "limits")
"""What PAFT lacks where names are cut alike, among it distractors; fatal errors it learns there."""
PAFT_MILD = (*5 * ("SBP",), *PAFT_MIX[5:])
ALPHA = 0.8
"""More than the paper's 0.3, for it is of a fifth of the paper's trajectories: a small model
learns to read names from some 400 renamed ones. The study `alpha` has 0.3 too."""
SLIPS = 0.35
"""The share of PAFT's trajectories in which the expert errs first: error feedback on own calls."""
ALONE = 0.5
"""What a control takes of an arm's trajectories: of its one kind, still more than PAFT has."""
PART = round(ALPHA / len(PAFT_MIX), 4)
"""The share of PAFT's trajectories that one entry of `PAFT_MIX` has."""


class Study(msgspec.Struct, frozen=True):
    """A question, the arms that answer it, and what they are compared by.

    Attributes:
        seeds: training seeds for a claim; with fewer the study is exploratory.
        contrasts: pairs of arms; the second minus the first is reported.
        dealt: stacks of which each task meets one, as often as their numbers say (`a:1+b:2*3`).
    """

    name: str
    question: str
    arms: tuple[Arm, ...]
    contrasts: tuple[tuple[str, str], ...] = ()
    probes: tuple[str, ...] = PROBES
    seeds: int = 3
    dealt: tuple[str, ...] = ()


def _shifted(
    alpha: float, shifts: tuple[str, ...], severities: tuple[int, ...] = SHORT
) -> dict[str, Any]:
    """What of `Mix` an arm with shifted scenes changes."""
    return {"alpha": round(alpha, 4), "shifts": shifts, "severities": severities}


def _paft(
    alpha: float, shifts: tuple[str, ...], severities: tuple[int, ...] = SHORT
) -> dict[str, Any]:
    """What of `Mix` an arm of PAFT changes: slips come with error feedback."""
    return {**_shifted(alpha, shifts, severities), "slips": SLIPS * ("EFP" in shifts)}


BASE = Arm("base", "the model as it is", method="none")
STATIC = Arm("static", "clean trajectories only")
QUARTER = Arm("quarter", "a quarter of the clean trajectories", factor=0.25)
"""`static` is four times its data, and has as many steps as four passes over it."""
DIVERSE = Arm(
    "diverse",
    "true names; shuffled tool subsets, distractors, more phrasings",
    mix=_shifted(1.0, ("diverse",)),
)
PAFT = Arm(
    "paft",
    f"alpha {ALPHA:g}: symbols, error feedback, descriptions, limits; slips in {SLIPS:.0%}",
    mix=_paft(ALPHA, PAFT_MIX),
)
GRPO = Arm(
    "grpo-shifted",
    "GRPO on shifted and unsolvable scenes, right refusals paid",
    "grpo",
    mix=_shifted(0.8, RL_MIX),
    init="paft",
)
PAFT_ALL = Arm(
    "paft-all",
    "PAFT with formats, tools that change midway, the graph, distractors, and more limits",
    mix=_paft(0.88, (*PAFT_MIX, *ALL)),
    factor=1.5,
)
REFUSES = Arm(
    "refuses",
    "clean, and as many limits as PAFT has",
    mix=_shifted(2 * PART, ("limits",)),
)
SLIPPING = Arm("only-slips", f"clean, slips in {SLIPS:.0%}", mix={"slips": SLIPS})
WITHOUT = Arm(
    "paft-without-limits",
    "PAFT without unsolvable scenes and their look-alikes",
    mix=_paft(ALPHA - 2 * PART, PAFT_MIX[:-2]),
)


def _renamed(layout: str, summary: str) -> Arm:
    """The control that reads names; in the scale's layout where none is given."""
    return Arm(
        f"renamed-{layout}" if layout else "renamed",
        f"renamed tools only, {summary}",
        mix={"alpha": 1.0, "shifts": RENAMED},
        settings={"layout": layout} if layout else {},
        factor=ALONE,
        probes=TIER_1,
    )


def _native(tier: str, shifts: tuple[str, ...], probes: tuple[str, ...]) -> Arm:
    return Arm(
        f"native-{tier}",
        f"trained on shifts of {tier} only",
        mix=_shifted(1.0, shifts),
        factor=ALONE,
        probes=probes,
    )


def _alpha(share: float) -> Arm:
    """PAFT at another alpha; slips keep step, or little of it would be mostly slips."""
    name, slips = f"alpha-{share:g}".replace(".", "-"), round(SLIPS * share / ALPHA, 4)
    return Arm(
        name,
        f"PAFT, alpha {share:g}, slips in {slips:.0%}",
        mix={**_paft(share, PAFT_MIX), "slips": slips},
    )


def _constrained(arm: Arm) -> Arm:
    """What an arm learned, measured with decoding that admits only calls of the tools on offer."""
    return Arm(
        f"{arm.name}-constrained",
        f"{arm.name}, that can make only calls of the tools on offer",
        method="none",
        init=arm.name,
        settings=arm.settings,
        decoding="constrained",
    )


def _spaced(arm: Arm) -> Arm:
    """The same training in the layout in which the tokenizer cuts list, request and call alike."""
    return msgspec.structs.replace(
        arm,
        name=f"{arm.name}-spaced-texts",
        summary=f"{arm.name}, with spaces before calls and texts, as in the list and in requests",
        init=f"{arm.init}-spaced-texts" if arm.init else "",
        settings={**arm.settings, "layout": "spaced-texts"},
    )


def _families() -> tuple[Arm, ...]:
    """Each family of PAFT alone, and all but each; every family keeps the amount that it has.

    `symbols` is SBP at full strength, so the two come and go together. Of the limits alone, and of
    PAFT without them, `contrast` has arms already. Slips, feedback on own errors, go with EFP.
    """
    arms = []
    for family, entries in (("SBP", ("symbols", "SBP:3")), ("EFP", ("EFP",)), ("SRP", ("SRP",))):
        own = tuple(each for each in PAFT_MIX if each in entries)
        rest = tuple(each for each in PAFT_MIX if each not in entries)
        alone, without = _paft(PART * len(own), own), _paft(PART * len(rest), rest)
        slips = ", slips with it" if family == "EFP" else ""
        arms.append(Arm(f"only-{family}", f"PAFT of {family} alone{slips}", mix=alone))
        arms.append(Arm(f"without-{family}", f"PAFT of all but {family}{slips}", mix=without))
    return (*arms, SLIPPING, REFUSES, WITHOUT)


STUDIES: dict[str, Study] = {
    study.name: study
    for study in (
        Study(
            "controls",
            "Can a model of this size do the tasks, read names it never saw, and learn each tier?",
            (
                STATIC,
                _renamed("", "description before name"),
                _renamed("name-first", "name before description"),
                _renamed("spaced", "calls that begin with a space, as names in the list do"),
                _renamed("spaced-texts", "spaces before texts too, as in what a user says"),
                _native("interaction", ("EFP", "formats", "midway"), TIER_2),
                _native("reasoning", ("graph",), TIER_3),
                _native("internalization", ("limits",), TIER_4),
            ),
            seeds=1,
        ),
        Study(
            "contrast",
            "Does static training break under shift, and does PAFT mend more than diversity?",
            (BASE, STATIC, DIVERSE, PAFT, REFUSES, WITHOUT),
            (
                ("static", "diverse"),
                ("static", "paft"),
                ("diverse", "paft"),
                ("diverse", "paft-without-limits"),
                ("static", "refuses"),
                ("paft-without-limits", "paft"),
            ),
        ),
        Study(
            "rl",
            "Does RL on solvable scenes unlearn refusal, and do paid refusals keep it?",
            (
                PAFT,
                Arm("grpo-static", "GRPO on clean scenes", "grpo", init="paft"),
                Arm(
                    "grpo-solvable",
                    "GRPO on shifted scenes, all of them solvable",
                    "grpo",
                    mix=_shifted(0.8, RL_MIX[:3]),
                    init="paft",
                ),
                GRPO,
                STATIC,
                Arm("format", "clean trajectories, too few for more than their form", factor=0.08),
                Arm(
                    "grpo-from-format",
                    "GRPO on clean scenes, from the form alone",
                    "grpo",
                    init="format",
                    factor=2.0,
                ),
                *map(_spaced, (PAFT, GRPO)),
            ),
            (
                ("paft", "grpo-static"),
                ("paft", "grpo-solvable"),
                ("paft", "grpo-shifted"),
                ("grpo-solvable", "grpo-shifted"),
                ("format", "grpo-from-format"),
                ("static", "grpo-from-format"),
                ("paft-spaced-texts", "grpo-shifted-spaced-texts"),
            ),
        ),
        Study(
            "copying",
            "Does reading fail, or copying: what if no name can be misspelt, or need not be spelt?",
            (
                STATIC,
                PAFT,
                *map(_constrained, (STATIC, PAFT)),
                *map(_spaced, (STATIC, PAFT)),
            ),
            (
                ("static", "static-constrained"),
                ("paft", "paft-constrained"),
                ("static-constrained", "paft-constrained"),
                ("static", "static-spaced-texts"),
                ("paft", "paft-spaced-texts"),
                ("static-spaced-texts", "paft-spaced-texts"),
            ),
        ),
        Study(
            "together",
            "How much does PAFT of all families win back in the layout in which names are copied?",
            tuple(map(_spaced, (STATIC, PAFT, PAFT_ALL))),
            (
                ("static-spaced-texts", "paft-spaced-texts"),
                ("static-spaced-texts", "paft-all-spaced-texts"),
                ("paft-spaced-texts", "paft-all-spaced-texts"),
            ),
        ),
        Study(
            "alpha",
            "How much perturbation is enough?",
            (STATIC, _alpha(0.1), _alpha(0.3), PAFT, _alpha(1.0)),
            tuple(("static", arm) for arm in ("alpha-0-1", "alpha-0-3", "paft", "alpha-1")),
        ),
        Study(
            "families",
            "Which perturbations carry the repair, and to which shifts?",
            (STATIC, PAFT, *_families()),
            tuple(
                ("paft" if "without" in arm.name else "static", arm.name)
                for arm in _families()
            ),
        ),
        Study(
            "more",
            "Do four times the data, or four times the steps, repair static training?",
            (
                QUARTER,
                STATIC,
                Arm("steps-x4", "that quarter, four passes over it", factor=0.25, passes=4),
            ),
            (("quarter", "static"), ("quarter", "steps-x4")),
        ),
        Study(
            "beyond",
            "Does PAFT over the graph, over all families or over pairs help where PAFT does not?",
            (
                STATIC,
                PAFT,
                Arm(
                    "paft-graph",
                    "PAFT with merged, split, reversed and guarded tools",
                    mix=_paft(13 * PART, (*PAFT_MIX, "graph", "graph")),
                ),
                Arm(
                    "paft-wide",
                    "PAFT with formats, tools that change midway, the graph, and more fatal errors",
                    mix=_paft(0.88, (*PAFT_MIX, *WIDE)),
                    factor=1.5,
                ),
                Arm(
                    "paft-composed",
                    "PAFT with pairs of shifts",
                    mix=_paft(ALPHA, (*PAFT_MIX, "semantic_rename@1+transient_error",
                                   "identity_erasure+redirect")),
                ),
                Arm(
                    "paft-mild-first",
                    "PAFT of severity 1, then of 1 and 2",
                    mix=_paft(ALPHA, PAFT_MIX),
                    init="paft-mild",
                    factor=0.5,
                ),
                Arm(
                    "paft-mild",
                    "PAFT of severity 1, the first half of the curriculum",
                    mix=_paft(ALPHA, PAFT_MILD, (1,)),
                    factor=0.5,
                ),
            ),
            tuple(
                (start, arm)
                for arm in ("paft-graph", "paft-wide", "paft-composed", "paft-mild-first")
                for start in ("static", "paft")
            ),
            probes=(*PROBES, *COMPOSED),
        ),
    )
}  # fmt: skip


def find_scale(name: str) -> Scale:
    """How large a study is at this preset."""
    if name not in SCALES:
        raise UsageError(unknown("preset", name, SCALES))
    return SCALES[name]


def find_study(name: str) -> Study:
    """The study of this name."""
    if name not in STUDIES:
        raise UsageError(unknown("study", name, STUDIES))
    return STUDIES[name]
