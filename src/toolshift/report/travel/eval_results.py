"""A run as evaluation results of Hugging Face: `.eval_results/*.yaml` of a model's repository."""

from __future__ import annotations

import re
from math import isnan
from pathlib import Path
from typing import Any

import yaml

from toolshift.core.errors import UsageError
from toolshift.core.files import save
from toolshift.measure.metrics import Measures
from toolshift.measure.report import AgentReport, Report
from toolshift.report.travel.every_eval_ever import METHODS
from toolshift.report.travel.named import agents_of, slug
from toolshift.runs.run_folder import Manifest, RunFolder

_DATASET = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


def write_results(
    folder: RunFolder, report: Report, out: Path, dataset: str, agent: str = "", source: str = ""
) -> list[Path]:
    """Writes one file an agent, `OUT/AGENT/.eval_results/toolshift-SUITE.yaml`."""
    if not _DATASET.fullmatch(dataset):
        raise UsageError(
            f"--hf-dataset {dataset!r}: name the benchmark on the Hub as OWNER/NAME, as in "
            "acme/toolshift-quick"
        )
    files = []
    reported = {each.name: each for each in report.agents}
    for about in agents_of(folder, agent):
        name = str(about["name"])
        if name not in reported:
            continue
        entries = entries_of(reported[name], folder.manifest, dataset, source)
        file = out / slug(name) / ".eval_results" / f"toolshift-{slug(folder.manifest.suite)}.yaml"
        content = yaml.safe_dump(entries, sort_keys=False, allow_unicode=True).encode()
        save(file, content, make_folder=True)
        files.append(file)
    return files


def entries_of(
    report: AgentReport, manifest: Manifest, dataset: str, source: str = ""
) -> list[dict[str, Any]]:
    """The results of an agent: accuracy in percent, clean and in each tier."""
    rows = [("clean", report.clean), *((row.label, row) for row in report.tiers)]
    return [
        {
            "dataset": {"id": dataset, "task_id": name},
            "value": round(100 * row.accuracy.estimate, 2),
            "date": manifest.started,
            **({"source": {"url": source}} if source else {}),
            "notes": _notes(row, manifest),
        }
        for name, row in rows
        if not isnan(row.accuracy.estimate)
    ]


def _notes(row: Measures, manifest: Manifest) -> str:
    said = [f"accuracy in percent, {_limits(row)}"]
    if row.defined:
        drop = row.drop
        low, middle, high = (f"{100 * v:z.1f}" for v in (drop.low, drop.estimate, drop.high))
        said.append(f"drop from clean {middle} points, 95% {low} to {high}")
    if row.void:
        said.append(f"{row.void} void episodes left out")
    said.append(f"ToolShift {manifest.toolshift}, {manifest.suite}, plan {manifest.plan_hash}")
    return "; ".join(said)


def _limits(row: Measures) -> str:
    found = row.accuracy
    method = METHODS.get(found.method, found.method)
    return f"95% {100 * found.low:.1f} to {100 * found.high:.1f} ({method}), {found.n} tasks"
