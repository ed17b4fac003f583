"""Exports in the real packages of others, each in an environment of its own.

    python tests/train/export/run.py --envs DIR --out studies/exports/results.json

Makes the environments that are missing (`requirements/`), installs ToolShift without extras and
the exported package there, and plays scenes with scripted policies: the oracle's calls must earn 1,
a wrong answer 0, and an answer in prose 1 where the framework can pass it on. Records of Every Eval
Ever are judged by its own validator. Exit code 1 where anything is not as it must be.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
PROGRAMS = ROOT / "tests/train/export/programs"
sys.path[:0] = [str(ROOT / "tests"), str(PROGRAMS)]

from connect.scripted_model import scripted_model  # noqa: E402
from policies import says  # noqa: E402

from toolshift.train.export.scenes import read_scenes  # noqa: E402

COUNT = 4
SECONDS = 900
NAME, PACKAGE = "toolshift-quick", "toolshift_quick"


class Anyone:
    """A part for `scripted_model`: in whatever scene the user's words belong to."""

    def __init__(self, folder: Path, policy: str) -> None:
        scenes = read_scenes(folder)
        self.policy = policy
        self.scenes = {s.asks[0].text: s for s in map(scenes.scene, range(COUNT))}

    def reply(self, request: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
        said = next(m["content"] for m in request["messages"] if m["role"] == "user")
        turn = sum(m["role"] == "assistant" for m in request["messages"])
        spoken = says(self.policy, self.scenes[said], turn)
        if isinstance(spoken, str):
            return {"role": "assistant", "content": spoken}, []
        function = {"name": spoken[0], "arguments": json.dumps(spoken[1])}
        call = {"id": f"call_{turn}", "type": "function", "function": function}
        return {"role": "assistant", "content": None, "tool_calls": [call]}, []


def environment(envs: Path, name: str, core: bool = True, python: str = sys.executable) -> Path:
    """The folder of programs of an environment, made where it is missing."""
    folder = envs / name
    if not (folder / "made").exists():
        subprocess.run([python, "-m", "venv", folder], check=True)
        wanted = ["-r", str(ROOT / f"requirements/{name}.txt"), *([str(ROOT)] if core else [])]
        install = [folder / "bin/python", "-m", "pip", "install", "-q", *wanted]
        subprocess.run(install, check=True, stderr=subprocess.DEVNULL)
        (folder / "made").touch()
    return folder / "bin"


def exported(kind: str, folder: Path, bin_: Path) -> Path:
    """Writes a package and installs it; returns where its scenes stand."""
    words = [sys.executable, "-m", "toolshift", "export", kind, "--suite", "quick", "--out", folder]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    install = [bin_ / "python", "-m", "pip", "install", "-q", "--no-deps", "--force-reinstall"]
    subprocess.run([*install, folder], check=True, stderr=subprocess.DEVNULL)
    return folder if kind == "openenv" else folder / PACKAGE


def printed(bin_: Path, program: str, *words: object) -> Any:
    """What a program prints last, as JSON."""
    command = [bin_ / "python", PROGRAMS / program, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode:
        raise SystemExit(f"{program} failed:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def openenv(envs: Path, scratch: Path) -> dict[str, Any]:
    bin_ = environment(envs, "openenv")
    folder = exported("openenv", scratch / "openenv", bin_)
    rows = printed(bin_, "openenv_policy.py", PACKAGE, COUNT)
    words = [bin_ / "openenv", "validate", folder]
    told = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS, check=False)
    verdict = told.stdout.strip().splitlines()[-1]
    return {"rows": rows, "openenv validate": verdict, "as_expected": told.returncode == 0}


def trl(envs: Path, scratch: Path) -> dict[str, Any]:
    bin_ = environment(envs, "trl")
    exported("trl", scratch / "trl", bin_)
    return {"rows": printed(bin_, "trl_policy.py", PACKAGE, COUNT, scratch / "out")}


def verifiers(envs: Path, scratch: Path) -> dict[str, Any]:
    bin_ = environment(envs, "verifiers")
    folder = exported("verifiers", scratch / "verifiers", bin_)
    loaded = printed(bin_, "verifiers_load.py", NAME, COUNT)
    rows = []
    for policy in ("oracle", "wrong", "prose"):
        with scripted_model(Anyone(folder, policy)) as model:  # type: ignore[arg-type]
            traces = _evaluated(bin_, model.url, scratch / policy)
        for trace in traces:
            data, given = trace["task"]["data"], trace["rewards"]["passed"]
            rows.append({"scene": data["scene"], "shifts": data["shifts"], "policy": policy,
                         "reward": given and given["score"]})  # fmt: skip
    right = loaded["infinite"] and loaded["same_again"] and len(rows) == 3 * COUNT
    return {"rows": rows, "loaded": loaded["class"], "as_expected": right}


def _evaluated(bin_: Path, url: str, out: Path) -> list[dict[str, Any]]:
    """The traces of `vf-eval` with its own harness `null`."""
    words = [
        bin_ / "vf-eval", NAME, "-n", COUNT, "--env.agent.harness.id", "null",
        "--env.agent.runtime.type", "subprocess", "--client.base-url", url,
        "--client.api-key-var", "SCRIPTED_KEY", "-m", "scripted", "--no-push", "--no-rich",
        "-o", out, "--run.dir", "run", "-c", 2,
    ]  # fmt: skip
    paths = os.pathsep.join((str(bin_), os.environ["PATH"]))
    environ = {**os.environ, "SCRIPTED_KEY": "none", "PATH": paths}
    done = subprocess.run(
        [*map(str, words)],
        capture_output=True,
        text=True,
        env=environ,
        timeout=SECONDS,
        check=False,
    )
    file = out / "run/traces.jsonl"
    if not file.exists():
        raise SystemExit(f"vf-eval failed:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    episodes = [json.loads(line) for line in file.read_text().splitlines()]
    return [trace for each in episodes for trace in each.get("traces", [each])]


def every_eval_ever(envs: Path, scratch: Path) -> dict[str, Any]:
    python = os.environ.get("PYTHON312", "python3.12")
    bin_ = environment(envs, "every-eval-ever", core=False, python=python)
    run, out = scratch / "run", scratch / "eee"
    ours = [sys.executable, "-m", "toolshift"]
    agents = ["--agent", "oracle", "--agent", "memorises_names", "--tasks", "4", "--out", run]
    subprocess.run([*ours, "run", *agents], check=True, stdout=subprocess.DEVNULL)
    report = [*ours, "report", run, "--no-html", "--eee", out]
    subprocess.run(report, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    pattern = f"{out}/data/*/*/*/*.json*"
    words = [bin_ / "python", "-m", "every_eval_ever", "validate", "--format", "json", pattern]
    told = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS, check=False)
    files = len(list(out.rglob("*.json*")))
    return {"files": files, "exit_code": told.returncode, "rows": [],
            "as_expected": told.returncode == 0 and files == 4}  # fmt: skip


CHECKS = {
    "verifiers": verifiers,
    "openenv": openenv,
    "trl": trl,
    "every-eval-ever": every_eval_ever,
}


def as_expected(found: dict[str, Any]) -> bool:
    """Whether every policy earned what it must."""
    wanted = {"oracle": 1.0, "prose": 1.0, "wrong": 0.0}
    right = all(row["reward"] == wanted[row["policy"]] for row in found["rows"])
    return right and found.get("as_expected", True)


@contextmanager
def folder_for(given: Path | None) -> Iterator[Path]:
    """A folder that stays where one is named."""
    if given is not None:
        given.mkdir(parents=True, exist_ok=True)
        yield given.resolve()
        return
    with tempfile.TemporaryDirectory() as made:
        yield Path(made)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--envs", type=Path, help="where environments are made and kept")
    parser.add_argument("--out", type=Path, help="where the results are written")
    parser.add_argument("--only", choices=list(CHECKS), action="append")
    args = parser.parse_args()
    found: dict[str, Any] = {}
    with folder_for(args.envs) as envs:
        for name in args.only or CHECKS:
            with tempfile.TemporaryDirectory() as scratch:
                found[name] = CHECKS[name](envs, Path(scratch))
            wanted = (ROOT / f"requirements/{name}.txt").read_text().splitlines()
            found[name]["requirements"] = [line for line in wanted if not line.startswith("#")]
            found[name]["as_expected"] = as_expected(found[name])
            print(name, "as expected" if found[name]["as_expected"] else "NOT AS EXPECTED")
    if args.out:
        head = {"toolshift": version("toolshift"), "python": platform.python_version(),
                "platform": f"{platform.system()}-{platform.machine()}"}  # fmt: skip
        before = json.loads(args.out.read_text()) if args.out.exists() else {}
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps({**before, **head, **found}, indent=1) + "\n")
    sys.exit(0 if all(each["as_expected"] for each in found.values()) else 1)


if __name__ == "__main__":
    main()
