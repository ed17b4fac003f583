"""The commands of the lab, as `toolshift --help` lists them; nothing else is imported for it."""

from __future__ import annotations

from toolshift.cli.group import Entry

REPRODUCE = Entry(
    "toolshift_lab.cli.reproduce:reproduce",
    "Train and measure the arms of a study of the research.",
    "train",
)
ARTIFACTS = Entry(
    "toolshift_lab.cli.artifacts:artifacts",
    "List the weights of the studies, or bring some back.",
)
