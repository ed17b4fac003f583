"""GEPA on the texts of tools after a release: a baseline beside the layer.

    pip install gepa
    python studies/adapt/evolve.py --scripted
    python studies/adapt/evolve.py --model [--calls 24]

`semantic_rename:2` gives the tools of `poi` other names, the same ones in all tasks. GEPA (Agrawal
et al. 2025, arXiv:2507.19457) may reword the descriptions of these, scored by the share of tasks
that are passed; up to half a point is given for calls that succeed, for a search needs scores that
differ. What it finds is tried on tasks that it was not shown. Nothing of the lock is seen.

scripted   the agent calls by heart, and by another name where a description says that this was the
           name that failed. The reflection is ideal for it: it is asked for a new text of one tool,
           and says which of the failed names this tool had, one guess after the other.
model      the agent is `smol:static`, the reflection is SmolLM2-135M-Instruct.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import gepa
from agents import ByHeart
from gepa.core.adapter import EvaluationBatch
from released import release_files
from stream import Stream, memory_of

from toolshift.agents.catalog import make_agent
from toolshift.agents.local import LocalAgent
from toolshift.core.calls import ToolCall
from toolshift.core.message import Reply, Turn
from toolshift.core.scene import Applied, Scene
from toolshift.episode.contract import converse, finished
from toolshift.episode.episode import Episode
from toolshift.episode.grade import grade
from toolshift.measure.statistics import wilson
from toolshift.shifts.registry import compose

HERE = Path(__file__).parent
FILE = HERE / "evolve.json"
SEED, TRAIN, HELD_OUT = 7, 8, 24
SHIFT = (Applied("semantic_rename", 2),)
FORMERLY = re.compile(r"Formerly ([\w-]+)\.")
Texts = Mapping[str, str]


class Described:
    """An agent that is shown other descriptions.

    Args:
        inner: the agent.
        texts: by the name of the tool today.
        heeds: whether a call by a name that a description gives as a former one is made anew.
    """

    def __init__(self, inner: Any, texts: Texts, heeds: bool) -> None:
        self.inner, self.texts, self.heeds = inner, texts, heeds
        self.name = f"{inner.name} with other texts"

    def reply(self, turn: Turn) -> Reply:
        """Answers as the agent does, to the tools as they are described."""
        tools = [self._described(each) for each in turn.tools]
        said = Reply.of(finished(self.inner.reply(Turn(turn.messages, tools))))
        if not self.heeds:
            return said
        was = {old: new for new, text in self.texts.items() for old in FORMERLY.findall(text)}
        calls = tuple(
            ToolCall(was[call.name], call.arguments, call.id)
            if isinstance(call, ToolCall) and call.name in was
            else call
            for call in said.calls
        )
        return Reply(said.text, calls, said.usage)

    def _described(self, tool: dict[str, Any]) -> dict[str, Any]:
        text = self.texts.get(tool["function"]["name"])
        return (
            tool
            if text is None
            else {**tool, "function": {**tool["function"], "description": text}}
        )


class Tasks:
    """What GEPA optimises: tasks after the release, by number.

    Args:
        stream: of tasks.
        model: what plays them; the scripted agent where None.
    """

    propose_new_texts = None

    def __init__(self, stream: Stream, model: Any = None) -> None:
        self.stream, self.model, self.episodes = stream, model, 0

    def scene(self, number: int) -> Scene:
        """A task after the release."""
        return compose(self.stream.clean(number), SHIFT, draw="evolve")

    def played(self, number: int, texts: Texts) -> tuple[bool, float, list[str]]:
        """Whether a task is passed, its score, and what failed."""
        scene = self.scene(number)
        inner = self.model
        if inner is None:
            inner = ByHeart("reader", memory_of(scene.clean.rehearsal, True))
        episode = Episode(scene)
        converse(Described(inner, texts, self.model is None), episode)
        self.episodes += 1
        calls = [step for step in episode.steps if step.kind == "call"]
        failed = [f"{step.name} failed: {step.text[:200]}" for step in calls if not step.ok]
        passed = grade(episode).passed
        worked = sum(step.ok for step in calls) / max(len(scene.calls), 1)
        return passed, 1.0 if passed else min(worked, 1.0) / 2, failed

    def evaluate(
        self, batch: list[int], candidate: dict[str, str], capture_traces: bool = False
    ) -> EvaluationBatch[Any, Any]:
        """Plays tasks with these texts."""
        played = [self.played(number, candidate) for number in batch]
        traces = [failed for _, _, failed in played] if capture_traces else None
        return EvaluationBatch(
            [passed for passed, _, _ in played], [score for _, score, _ in played], traces
        )

    def make_reflective_dataset(
        self,
        candidate: dict[str, str],
        eval_batch: EvaluationBatch[Any, Any],
        components_to_update: list[str],
    ) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """What failed, for each text that is to be written anew."""
        failed = [
            {"Inputs": name, "Generated Outputs": "; ".join(some), "Feedback": f"score {score}"}
            for name in components_to_update
            for some, score in zip(eval_batch.trajectories or [], eval_batch.scores, strict=True)
            if some
        ]
        return {name: [one for one in failed if one["Inputs"] == name] for name in candidate}


class Guesses:
    """The scripted reflection: each time it is asked of a tool, the next name that has failed."""

    def __init__(self, texts: Texts) -> None:
        self.texts = texts
        self.tried: dict[str, set[str]] = {}

    def __call__(self, prompt: Any) -> str:
        """A new text for the tool that the prompt is about."""
        said = prompt if isinstance(prompt, str) else json.dumps(prompt)
        current = said.split("```")[1].strip()  # the text that is to be written anew comes first
        tool = next(name for name, text in self.texts.items() if current.startswith(text))
        tried = self.tried.setdefault(tool, set())
        failed = {name for name in re.findall(r"(\w+) failed", said) if name not in self.texts}
        left = sorted(failed - tried)
        if not left:  # each was tried once, perhaps on tasks that did not need this tool
            tried.clear()
            left = sorted(failed)
        if not left or FORMERLY.search(current):
            return f"```\n{current}\n```"
        tried.add(left[0])
        return f"```\n{current} Formerly {left[0]}.\n```"


def reflection_of(model: LocalAgent) -> Any:
    """A small language model as GEPA asks it."""

    def asked(prompt: Any) -> str:
        said = prompt if isinstance(prompt, str) else "\n".join(str(one) for one in prompt)
        return Reply.of(model.reply(Turn([{"role": "user", "content": said}], []))).text

    return asked


def run(stream: Stream, model: str, calls: int) -> dict[str, Any]:
    """One optimisation, and what its best texts pass of the tasks that it was not shown."""
    begun = time.process_time()
    tasks = Tasks(stream, make_agent(model) if model else None)
    scenes = [tasks.scene(number) for number in range(TRAIN)]  # each renames what it needs
    clean = {tool.name for tool in scenes[0].clean.tools}
    texts = {
        tool.name: tool.description
        for scene in scenes
        for tool in scene.tools
        if tool.name not in clean
    }
    reflect = reflection_of(LocalAgent(max_new_tokens=64)) if model else Guesses(texts)
    proposals = itertools.count()

    def asked(prompt: Any) -> str:
        next(proposals)
        return str(reflect(prompt))

    train = list(range(TRAIN))
    found = gepa.optimize(
        seed_candidate=dict(texts),
        trainset=train,
        valset=train,
        adapter=tasks,
        reflection_lm=asked,
        max_metric_calls=calls,
        reflection_minibatch_size=4,
        seed=0,
        display_progress_bar=False,
    )
    spent = tasks.episodes
    held_out = range(TRAIN, TRAIN + (HELD_OUT if not model else 4))
    after = [tasks.played(number, found.best_candidate)[0] for number in held_out]
    before = [tasks.played(number, texts)[0] for number in held_out]
    return {
        "episodes": spent,
        "proposals": next(proposals),
        "accepted": len(found.candidates) - 1,
        "score": [
            round(found.val_aggregate_scores[0], 3),
            round(max(found.val_aggregate_scores), 3),
        ],
        "texts": {k: v for k, v in found.best_candidate.items() if v != texts[k]},
        "passed before": [sum(before), len(before)],
        "passed after": [sum(after), len(after)],
        "cpu seconds": round(time.process_time() - begun),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--scripted", action="store_true")
    parser.add_argument("--model", action="store_true")
    parser.add_argument("--calls", type=int, default=24, help="episodes that GEPA may play")
    options = parser.parse_args()
    results = json.loads(FILE.read_text()) if FILE.exists() else {}
    with TemporaryDirectory() as folder:
        stream = Stream(release_files(Path(folder)), TRAIN + HELD_OUT, SEED)
        if options.scripted:
            results["scripted"] = run(stream, "", options.calls)
        if options.model:
            results["smol:static"] = run(stream, "smol:static", options.calls)
    FILE.write_text(json.dumps(results, indent=1) + "\n")
    for name, one in results.items():
        ends = [wilson(*one[key]) for key in ("passed before", "passed after")]
        shown = [f"{100 * e.estimate:.0f} [{100 * e.low:.0f}, {100 * e.high:.0f}]" for e in ends]
        print(f"{name}: {' -> '.join(shown)}%, {json.dumps(one)}")


if __name__ == "__main__":
    main()
