"""One training run as data, so that a study can start it in processes of its own.

    accelerate launch --config_file fsdp.yaml -m toolshift_lab.job FOLDER

trains what `FOLDER/job.json` asks for, into `FOLDER/model`. `toolshift reproduce --launch` does so.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any, Literal

import msgspec

from toolshift.core.errors import UsageError
from toolshift.core.files import write
from toolshift.core.importing import load
from toolshift.core.text import visible
from toolshift.core.tool import JSON
from toolshift.train.callbacks import checkpoints
from toolshift.train.data import make_rows
from toolshift.train.grpo_settings import GrpoSettings
from toolshift.train.presets import Settings
from toolshift.train.scenes import Mix
from toolshift.train.settings import GRPO, SFT
from toolshift_lab.former_families import as_trained

FILE = "job.json"


DAGGER = "toolshift_lab.dagger:train"
WITH_SCENES = "toolshift_lab.started:with_scenes"
AROUND = {
    "start": "toolshift_lab.started:train_start",
    "matched": "toolshift_lab.started:train_matched",
}


class Job(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What decides a run.

    Attributes:
        method: "sft", "grpo", or one of the lab's: see `toolshift_lab.arm.Arm`.
        mix: the scenes that it is trained on.
        count: how many trajectories are drawn from the mix; GRPO draws as many as it needs.
        settings: of the method, `Settings` or `GrpoSettings`, by name.
        rounds: of DAgger.
        aggregate: train anew in each round of DAgger, on all trajectories so far.
        more: what the lab's methods are told beside the settings, and the scenes that GRPO screens.
    """

    method: Literal["sft", "grpo", "dagger", "start", "matched"]
    mix: Mix
    count: int
    settings: dict[str, Any]
    rounds: int = 0
    aggregate: bool = False
    more: dict[str, Any] = {}

    def run(self, folder: Path, launch: str = "") -> None:
        """Trains into `folder/model`, and goes on where a run there was broken off."""
        if not launch:
            self.train(folder / "model")
            return
        if self.method == "dagger":
            raise UsageError(f"--launch {launch}: DAgger trains in one process: leave it out")
        folder.mkdir(parents=True, exist_ok=True)
        write(folder / FILE, JSON.encode(self))
        try:
            command = [*shlex.split(launch), "-m", "toolshift_lab.job", str(folder)]
            child = subprocess.Popen(command)
        except (OSError, ValueError) as fault:
            raise UsageError(f"--launch {launch}: {fault}") from None
        try:
            code = child.wait()
        except KeyboardInterrupt:
            child.wait()  # it has heard of it too; alone, it writes a checkpoint first
            raise
        if code:
            raise UsageError(
                f"training in {folder} ended with exit code {code}: {shlex.join(command)}"
            )

    def train(self, out: Path) -> None:
        """Trains in this process, or as one of several."""
        resume = bool(checkpoints(out))
        if self.method == "grpo":
            settings = msgspec.convert(self.settings, GrpoSettings)
            if self.more:
                around = (as_trained(self.mix), self.more, settings, out.parent)
                settings = load(WITH_SCENES)(*around)
            load(GRPO)(as_trained(self.mix), settings, out, resume=resume)
            return
        if self.method == "dagger":
            asked = msgspec.convert(self.settings, Settings)
            load(DAGGER)(self.mix, self.count, self.rounds, asked, out, aggregate=self.aggregate)
            return
        if self.method in ("start", "matched"):
            asked = msgspec.convert(self.settings, Settings)
            amount = (self.count,) if self.method == "matched" else ()
            load(AROUND[self.method])(as_trained(self.mix), *amount, self.more, asked, out)
            return
        told = {"mix": msgspec.to_builtins(self.mix), "count": self.count}
        rows = make_rows(as_trained(self.mix), self.count)
        load(SFT)(rows, msgspec.convert(self.settings, Settings), out, resume=resume, data=told)


def main(folder: Path) -> int:
    """Trains what a folder asks for; returns the exit code."""
    try:
        msgspec.json.decode((folder / FILE).read_bytes(), type=Job).train(folder / "model")
    except (UsageError, OSError, msgspec.MsgspecError) as fault:
        print(visible(f"Error: {fault}"), file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
