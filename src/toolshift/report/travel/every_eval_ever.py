"""A run as records of Every Eval Ever, schema 0.3: scores with intervals, episodes as samples.

    FOLDER/data/toolshift/OWNER/NAME/UUID.json             one an agent
    FOLDER/data/toolshift/OWNER/NAME/UUID_samples.jsonl    its scored episodes

The folder has the form of the project's datastore. The same run gives the same bytes: names and
times are derived from the run, so that an export made again replaces the earlier one.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from hashlib import sha256
from math import isnan
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from toolshift.core.errors import UsageError
from toolshift.core.files import draft, write, writing
from toolshift.core.terminal import Progress
from toolshift.core.tool import JSON
from toolshift.core.values import as_json, as_text
from toolshift.measure.compare import shifts_as_they_were
from toolshift.measure.metrics import Measures
from toolshift.measure.report import AgentReport, Report
from toolshift.measure.statistics import Interval
from toolshift.report.html.method import run_command
from toolshift.report.travel.named import agents_of, model_id, slug
from toolshift.report.travel.samples import samples
from toolshift.runs.run_folder import RunFolder

SCHEMA = "0.3.0"
COLLECTION = "toolshift"
METHODS = {
    "wilson": "Wilson score interval, one trial a task",
    "t": "t interval on means per task",
    "exact": "exact interval on means per task",
}
"""How `measure.statistics` names its estimators, in words."""


class Score(NamedTuple):
    """One figure of a report, as a result of its own.

    Attributes:
        name: of the arm: clean, placebo, a tier or a stack of shifts.
        kind: "accuracy" or "drop".
        row: the measures that it stands among.
        value: the figure.
    """

    name: str
    kind: str
    row: Measures
    value: Interval


def write_records(
    folder: RunFolder,
    report: Report,
    out: Path,
    agent: str = "",
    model: str = "",
    evaluator: str = "",
    watch: Progress = lambda done, total: None,
) -> list[Path]:
    """Writes the records of a run."""
    shifts_as_they_were(folder)
    reported = {each.name: each for each in report.agents}
    those = [each for each in agents_of(folder, agent) if each["name"] in reported]
    named = [(each, model_id(each, model)) for each in those]
    if len(named) > 1 and model:
        raise UsageError(f"--model-id {model} is one agent: name it with --agent")
    total = sum(reported[each["name"]].everything.episodes for each in those)
    done, files = 0, []
    for about, owner in named:
        one = _Export(folder, reported[about["name"]], about, owner, evaluator)
        with writing(out):
            for step in one.write(out):
                done += step
                watch(done, total)
        files.append(one.file(out))
    return files


class _Export:
    """The two files of one agent."""

    def __init__(
        self, folder: RunFolder, report: AgentReport, about: dict[str, Any], owner: str, by: str
    ) -> None:
        self.folder, self.report, self.about = folder, report, about
        self.owner, self.by = owner, by
        manifest = folder.manifest
        started = int(datetime.fromisoformat(manifest.started).timestamp())
        self.stamp = str(started)
        self.evaluation = f"{COLLECTION}/{owner}/{self.stamp}"
        self.prefix = f"{COLLECTION}.{slug(manifest.suite)}"
        key = JSON.encode([manifest.plan_hash, manifest.started, about])
        self.id = str(UUID(bytes=sha256(key).digest()[:16], version=4))
        developer, _, name = owner.partition("/")
        self.place = f"data/{COLLECTION}/{developer}/{name.replace('/', '_')}"

    def file(self, out: Path) -> Path:
        return out / self.place / f"{self.id}.json"

    def write(self, out: Path) -> Iterator[int]:
        """Writes both files, the samples first; yields a count of episodes."""
        file = self.file(out)
        file.parent.mkdir(parents=True, exist_ok=True)
        digest, rows = sha256(), 0
        common = {
            "schema_version": SCHEMA,
            "evaluation_id": self.evaluation,
            "model_id": self.owner,
        }
        with draft(file.with_name(f"{self.id}_samples.jsonl")) as stream:
            for sample in samples(self.folder, self.report.name, common, self.prefix):
                line = JSON.encode(sample) + b"\n"
                stream.write(line)
                digest.update(line)
                rows += 1
                yield 1
        record = self.record(rows, digest.hexdigest())
        write(file, msgspec.json.format(JSON.encode(record), indent=2) + b"\n")
        yield self.report.everything.episodes - rows

    def record(self, rows: int, checksum: str) -> dict[str, Any]:
        """The aggregate: what was run, and every score."""
        manifest = self.folder.manifest
        made: dict[str, Any] = {
            "schema_version": SCHEMA,
            "evaluation_id": self.evaluation,
            "evaluation_timestamp": self.stamp,
            "retrieved_timestamp": self.stamp,
            "source_metadata": {
                "source_name": "ToolShift",
                "source_type": "evaluation_run",
                "source_organization_name": self.by or "not stated",
                "evaluator_relationship": "other",
            },
            "eval_library": {
                "name": "toolshift",
                "version": manifest.toolshift,
                "additional_details": {
                    "plan_hash": manifest.plan_hash,
                    "python": manifest.python,
                    "shift_versions": as_json(manifest.shifts),
                },
            },
            "model_info": self._model(),
            "evaluation_results": [self._result(score) for score in scores_of(self.report)],
        }
        if rows:
            made["detailed_evaluation_results"] = {
                "format": "jsonl",
                "file_path": f"{self.place}/{self.id}_samples.jsonl",
                "hash_algorithm": "sha256",
                "checksum": checksum,
                "total_rows": rows,
                "additional_details": {
                    "void_episodes_left_out": str(self.report.everything.void),
                },
            }
        return made

    def _model(self) -> dict[str, Any]:
        details = {"deployment_type": "unknown", "model_availability": "unknown"}
        more = {key: as_text(value) for key, value in self.about.items() if key != "name"}
        return {
            "name": str(self.about["name"]),
            "id": self.owner,
            "developer": self.owner.partition("/")[0],
            "additional_details": {**more, **details},
        }

    def _result(self, score: Score) -> dict[str, Any]:
        manifest, name = self.folder.manifest, f"{self.prefix}.{score.name}.{score.kind}"
        selection = manifest.selection
        return {
            "evaluation_result_id": name,
            "evaluation_name": name,
            "source_data": {
                "dataset_name": f"{COLLECTION}: {manifest.suite}",
                "source_type": "other",
                "additional_details": {
                    "worlds": ", ".join(selection.worlds),
                    "pool": selection.pool,
                    "seeds": ", ".join(map(str, selection.seeds)),
                    "size": str(selection.size),
                    "trials": str(selection.trials),
                },
            },
            "evaluation_timestamp": self.stamp,
            "metric_config": _METRICS[score.kind],
            "score_details": _details(score),
            "generation_config": {
                "generation_args": {"execution_command": run_command(manifest)},
            },
        }


_METRICS: dict[str, dict[str, Any]] = {
    "accuracy": {
        "evaluation_description": "Share of episodes that pass, averaged over tasks. An "
        "unsolvable task passes if it is refused after the agent has seen the evidence.",
        "metric_id": "accuracy",
        "metric_name": "Accuracy",
        "metric_kind": "accuracy",
        "metric_unit": "proportion",
        "lower_is_better": False,
        "score_type": "continuous",
        "min_score": 0,
        "max_score": 1,
    },
    "drop": {
        "evaluation_description": "Clean minus shifted accuracy on the same tasks.",
        "metric_id": f"{COLLECTION}.drop",
        "metric_name": "Drop under shift",
        "metric_kind": "drop",
        "metric_unit": "proportion",
        "lower_is_better": True,
        "score_type": "continuous",
        "min_score": -1,
        "max_score": 1,
    },
}


def scores_of(report: AgentReport) -> Iterator[Score]:
    """The figures of an agent that are defined: accuracy and drop of each arm."""
    rows: list[tuple[str, Measures]] = [("clean", report.clean)]
    if report.placebo is not None:
        rows.append(("placebo", report.placebo))
    rows += [(f"tier-{row.label}", row) for row in report.tiers]
    rows += [(row.label, row) for row in report.shifts]
    for name, row in rows:
        if not isnan(row.accuracy.estimate):
            yield Score(name, "accuracy", row, row.accuracy)
        if row.defined:
            yield Score(name, "drop", row, row.drop)


def _details(score: Score) -> dict[str, Any]:
    row, value = score.row, score.value
    said = {
        "tasks": str(row.tasks),
        "episodes": str(row.episodes),
        "void_episodes": str(row.void),
        "unit_of_sampling": "task",
    }
    if score.kind == "drop":
        said |= {
            "p_value_adjusted": f"{row.p_value:.6g}",
            "significant": "true" if row.significant else "false",
        }
    details: dict[str, Any] = {"score": value.estimate, "details": said}
    if not isnan(value.low):
        details["uncertainty"] = {
            "confidence_interval": {
                "lower": value.low,
                "upper": value.high,
                "confidence_level": 0.95,
                "method": METHODS.get(value.method, value.method),
            },
            "num_samples": value.n,
        }
    return details
