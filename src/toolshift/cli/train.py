"""`toolshift train`: sft, paft and grpo, each in a file of its own."""

from __future__ import annotations

import click

from toolshift.cli.group import Group
from toolshift.cli.grpo import grpo
from toolshift.cli.paft import paft
from toolshift.cli.sft import sft


@click.group(cls=Group)
def train() -> None:
    """Train a model: sft, paft (a share of the trajectories in shifted scenes), grpo."""


train.add_command(sft)
train.add_command(paft)
train.add_command(grpo)
