"""An arm of a study: one way to train, at a scale."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Literal

import msgspec

from toolshift.core.shift import split_version
from toolshift.lm.prompt import Layout
from toolshift.shifts.stacks import stacks_of
from toolshift.train.scenes import Mix
from toolshift_lab import poi_2, read_shifts  # noqa: F401 - a world and shifts, by their names
from toolshift_lab.former_families import as_trained

Method = Literal["none", "sft", "grpo", "dagger", "start", "matched"]
SHORT = (1, 2)
"""Severities to train on: at 3, some shifts make rows of 2,000 tokens, which are slow and large."""

TRAINED_IN = "poi"
"""The world that arms are trained in, and measured in where no other is named."""


class Scale(msgspec.Struct, frozen=True):
    """How large a study is run: the tasks, and how much of everything.

    Attributes:
        kinds: task kinds of the world that arms are trained in; () for all.
        count: trajectories of an arm.
        updates: GRPO steps.
        tasks: tasks in which an arm is measured, under each shift.
        evidence: whether its figures say anything.
        clean: trajectories of an arm that has no shifted ones, where fewer are enough; else 0.
        layout: how arms that name no layout list their tools; None for as the preset does.
        preset: whose model and settings these are; "" for that of the scale's own name.
        max_repeats: of the plans that arms are measured by.
        today: whether shifts are measured as they are today; else as in release 0.2.0.
        model: a base model instead of the preset's; "" for that.
        world: that arms are measured in.
        trained: the scale whose training runs are measured; "" for its own.
        home: the world that arms are trained in.
        adapter: one that ships with the package, as `smol:paft`, which arms start from that start
            from no other arm; "" for the base model.
    """

    kinds: tuple[str, ...]
    count: int
    updates: int
    tasks: int
    evidence: bool = True
    clean: int = 0
    layout: Layout | None = None
    preset: str = ""
    max_repeats: int = 0
    today: bool = False
    model: str = ""
    world: str = TRAINED_IN
    trained: str = ""
    home: str = TRAINED_IN
    adapter: str = ""


class Arm(msgspec.Struct, frozen=True):
    """One way to train.

    Attributes:
        name: short, of letters, digits and hyphens.
        summary: what it is, in a few words.
        method: "sft", "grpo", "dagger" (SFT with rounds), "start" (SFT on few trajectories, until
            some scenes pass), "matched" (SFT that is stopped where it is as good as another arm),
            or "none" for the model that it starts from, as it is.
        mix: what of `Mix` differs from the study's: alpha, shifts, severities, worlds and kinds.
        init: the arm whose adapter this one starts from; "" for the base model.
        settings: what of the method's settings differs from the preset's.
        factor: how many times the scale's trajectories (SFT) or steps (GRPO) it takes.
        passes: how many times the preset's passes over the trajectories.
        probes: what it is measured under; () for the study's.
        decoding: "constrained" where it is measured so that only valid calls can be made.
        rounds: of DAgger.
        aggregate: train anew in each of them, on the trajectories of all rounds so far.
        more: what its method is told beside its settings (`toolshift_lab.started`).
        until: of "matched", the arm that it is to be as good as, at the same seed.
    """

    name: str
    summary: str
    method: Method = "sft"
    mix: dict[str, Any] = {}
    init: str = ""
    settings: dict[str, Any] = {}
    factor: float = 1.0
    passes: int = 1
    probes: tuple[str, ...] = ()
    decoding: Literal["free", "constrained"] = "free"
    rounds: int = 0
    aggregate: bool = False
    more: dict[str, Any] = {}
    until: str = ""

    def amount(self, scale: Scale) -> int:
        """How many trajectories it is trained on, or for how many GRPO steps."""
        if self.method == "none":
            return 0
        if self.method == "start":
            return int(max(self.more["sizes"]))
        rows = scale.count if self.mix.get("alpha") else scale.clean or scale.count
        return max(1, round((scale.updates if self.method == "grpo" else rows) * self.factor))

    @property
    def untrained(self) -> bool:
        """Whether it is what a study starts from, as it is, of which no seed decides anything."""
        return self.method == "none" and not self.init

    @property
    def together(self) -> int:
        """How many rows of a batch meet one draw of a shift, and so are shown the same tools.

        Two, for a batch of four with one list of tools shows half as many lists at little less
        cost, and learned reading more slowly; clean rows are all shown the same.
        """
        if self.method == "grpo":
            return 1
        return 2 if self.mix.get("alpha") else 4

    def meets(self, shifts: Collection[str]) -> bool:
        """Whether its own trajectories have one of these shifts."""
        if not self.mix.get("alpha"):
            return False
        severities = self.mix.get("severities", SHORT)
        entries = as_trained(Mix(shifts=tuple(self.mix["shifts"]))).shifts
        stacks = (s for entry in entries for level in severities for s in stacks_of(entry, level))
        return any(split_version(each.shift)[0] in shifts for stack in stacks for each in stack)

    def mixed(self, scale: Scale, seed: int) -> Mix:
        """The mix that it is trained on; one that starts from another arm has worlds of its own."""
        apart = 100 * bool(self.init)
        where = {"worlds": (scale.home,), "kinds": scale.kinds}
        return Mix(seed=seed + apart, share=self.together, **{**where, **self.mix})
