"""The evening again: what the agents really do on the new server, and what `toolshift change` said of it beforehand.

    python studies/evening/run.py [FILE.json.xz]     prints the table; with FILE the raw readings are written there

The new versions and the OpenAPI documents are in `versions.json.xz`; all is unpacked into a folder that goes afterwards.
"""

import contextlib
import io
import json
import lzma
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent


def reading(old, new, *more):
    """What `toolshift change` says, as JSON."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-m",
            "toolshift",
            "change",
            old,
            new,
            "--json",
            "--out",
            f"{folder}/run",
            *more,
        ]
        if "--mapping" not in more:
            command += ["--mapping", f"{folder}/asked.toml"]
        agents = ["--agent", "agents:fixed", "--agent", "agents:reader"]
        found = subprocess.run([*command, *agents], capture_output=True, text=True)
        return json.loads(found.stdout) if found.stdout else {"error": found.stderr[-500:]}


def main():
    results = Path(sys.argv[1]).resolve() if sys.argv[1:] else None
    with tempfile.TemporaryDirectory() as folder:
        for path in HERE.glob("*.*"):
            shutil.copy(path, folder)
        for name, text in json.loads(lzma.open(HERE / "versions.json.xz").read()).items():
            Path(folder, name).write_text(text)
        os.chdir(folder)
        sys.path.insert(0, folder)
        measure(results)
        os.chdir(HERE)


def measure(results):
    """Prints the table, with servers that run as long as it takes."""
    import truth

    os.environ["HALL_KEY"] = "s3cret"
    servers = [
        subprocess.Popen([sys.executable, "serve.py", *each])
        for each in (("plant", "8711"), ("plant_new", "8712"))
    ]
    try:
        time.sleep(1.5)
        with contextlib.redirect_stdout(io.StringIO()) as said:
            truth.main()
        real = {
            tuple(line.split()[1:3]): line.split()[3]
            for line in said.getvalue().splitlines()
            if line.startswith("openapi_new")
        }
        http = 'tools: {openapi: openapi.yaml, base_url: "http://127.0.0.1:8711", headers: {X-API-Key: "${HALL_KEY}"}, reset: POST /reset}'
        tasks = Path("tasks.yaml").read_text().replace("tools: {python: plant}", http)
        with tempfile.NamedTemporaryFile("w", suffix=".yaml", dir=".") as file:
            file.write(tasks)
            file.flush()
            ways = {
                "python": reading("plant.py", "plant_new.py", "--world", "tasks.yaml"),
                "python, answered": reading(
                    "plant.py", "plant_new.py", "--world", "tasks.yaml", "--mapping", "answers.toml"
                ),
                "openapi": reading("openapi.yaml", "openapi_new.yaml", "--world", file.name),
                "openapi, answered": reading(
                    "openapi.yaml",
                    "openapi_new.yaml",
                    "--world",
                    file.name,
                    "--mapping",
                    "answers.toml",
                ),
            }
    finally:
        for server in servers:
            server.terminate()
    for way, found in ways.items():
        if "error" in found:
            print(way, found)
            continue
        ends = [
            (real[agent.split(":")[1], task], one["shifted"])
            for agent, each in found["outcomes"].items()
            for task, one in each.items()
        ]
        tested = [(was, end) for was, end in ends if end.startswith(("passed", "failed"))]
        right = sum((was == "ok") == (end == "passed") for was, end in tested)
        states = [row["carriage"] for row in found["rows"] if row["severity"] != "harmless"]
        told = ", ".join(f"{states.count(one)} {one}" for one in ("carried", "asked", "said"))
        print(
            f"{way:20}{told:36}{len(found['questions']):3} questions, {right} of {len(tested)} verdicts right, {len(ends) - len(tested)} untested, exit {found['exit_code']}"
        )
    if results:
        short = {
            way: {
                "rows": [
                    [r["severity"], r["sentence"], r["carriage"], r["note"]] for r in f["rows"]
                ],
                "questions": [q["of"] for q in f["questions"]],
                "outcomes": {
                    a: {t: o["shifted"] for t, o in e.items()} for a, e in f["outcomes"].items()
                },
                "left_out": f["left_out"],
            }
            for way, f in ways.items()
        }
        results.write_bytes(lzma.compress(json.dumps(short, ensure_ascii=False).encode(), preset=9))


if __name__ == "__main__":
    main()
