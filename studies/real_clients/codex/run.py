"""Codex, as npm has it, through the model proxy before a scripted model of OpenAI's Responses.

    npm install @openai/codex@0.171.0
    python studies/real_clients/codex/run.py node_modules/.bin/codex

The model is no language model: it calls Codex's own shell and its own editor at once, then does
what the oracle did in the task, whose tools Codex has from `toolshift serve` over MCP. It knows
them by what it is shown, as names, parameters and results have moved. The server before it is as
strict as OpenAI's: thoughts that do not come back, or names that were not spoken, are HTTP 400.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "tests"))
from connect.responses_server import responses_server  # noqa: E402
from connect.scripted_model import Reader  # noqa: E402

Body = dict[str, Any]
TASK = "poi/booking/0"
WORD = "said-by-the-shell"
PATCH = f"*** Begin Patch\n*** Add File: note.txt\n+{WORD}\n*** End Patch"
MODEL = "gpt-6.2-sol"
PLAIN = {"tool_mode": None, "supports_search_tool": False, "use_responses_lite": False}
"""What of Codex's catalogue of models is changed: else this model is given one tool that runs
programs, and finds those of MCP by a search, and neither can be shifted."""
CONFIG = """
model = "{model}"
model_catalog_json = "{catalog}"
model_provider = "proxy"
check_for_update_on_startup = false
approval_policy = "never"
web_search = "disabled"

[analytics]
enabled = false

[model_providers.proxy]
name = "proxy"
base_url = "{url}"
env_key = "DUMMY_KEY"
wire_api = "responses"
supports_websockets = false
request_max_retries = 0
stream_max_retries = 0

[mcp_servers.desk]
command = "{python}"
args = ["-m", "toolshift", "serve", "--stdio", "--task", "{task}", "--trace", "{trace}"]
required = true
startup_timeout_sec = 120
default_tools_approval_mode = "approve"
"""


class Model:
    """Calls Codex's own tools first, then plays the oracle's part by what it is shown."""

    def __init__(self, task: str) -> None:
        self.reader = Reader(task)
        self.heard: list[str] = []

    def __call__(self, request: Body) -> Body:
        said = request["messages"]
        first = next((n for n, m in enumerate(said) if m["role"] == "assistant"), None)
        if first is None:
            return self._own_tools([tool["function"] for tool in request["tools"]])
        results = [m["content"] for m in said[first + 1 :] if m["role"] == "tool"]
        self.heard = self.heard or results[:2]
        rest = [*said[:first], *said[first + 3 :]]
        return self.reader.reply({**request, "messages": rest})[0]

    def _own_tools(self, tools: list[Body]) -> Body:
        calls = []
        for told, text in (("Runs a command", f"echo {WORD}"), ("FREEFORM", PATCH)):
            tool = next(one for one in tools if told in one["description"])
            (needed,) = tool["parameters"]["required"]
            function = {"name": tool["name"], "arguments": json.dumps({needed: text})}
            calls.append({"function": function})
        return {"content": "First my own tools.", "tool_calls": calls}


def plain_catalog(codex: str) -> str:
    """Codex's own catalogue of models, with tools given as they are."""
    command = [codex, "debug", "models", "--bundled"]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    models = json.loads(told.stdout)["models"]
    return json.dumps({"models": [{**model, **PLAIN} for model in models]})


def play(codex: str, shifts: str, work: Path) -> Body:
    """One session of Codex; what was shown, carried and graded."""
    model = Model(TASK)
    trace, graded = work / "proxy.jsonl", work / "episode.json"
    python = [sys.executable, "-m", "toolshift"]
    environment = {**os.environ, "DUMMY_KEY": "dummy", "CODEX_HOME": str(work / "home")}
    with responses_server(model) as server:
        command = [*python, "model-proxy", "--upstream", server.url, "--port", "0"]
        command += ["--trace", str(trace), *(["--shift", shifts] if shifts else [])]
        proxy = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert proxy.stdout is not None
            line = proxy.stdout.readline()
            url = f"http://{line.partition('http://')[2].partition('/v1')[0]}/v1"
            (work / "home").mkdir()
            catalog = work / "home" / "models.json"
            catalog.write_text(plain_catalog(codex))
            names = {"model": MODEL, "catalog": catalog, "url": url, "task": TASK}
            config = CONFIG.format(**names, python=sys.executable, trace=graded)
            (work / "home" / "config.toml").write_text(config)
            told = subprocess.run(
                [codex, "exec", "--json", "--skip-git-repo-check", "--sandbox",
                 "danger-full-access", "-C", str(work), "Do what the desk's user asks."],
                env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                timeout=600, check=False,
            )  # fmt: skip
        finally:
            proxy.terminate()
            proxy.wait()
        requests, refused = server.requests, server.refused
    records = [json.loads(line) for line in trace.read_text().splitlines()] if shifts else []
    events = [json.loads(line) for line in told.stdout.splitlines() if line.startswith("{")]
    if told.returncode or not graded.exists():
        raise SystemExit(f"Codex ended with {told.returncode}:\n{told.stdout}\n{told.stderr}")
    episode = json.loads(graded.read_text())
    (work / "requests.json").write_text(json.dumps(requests))
    return {
        "shifts": shifts or "none",
        "requests": len(requests),
        "refused by the strict server": refused,
        "the shell answered": WORD in model.heard[0],
        "the editor wrote": (work / "note.txt").read_text().strip() == WORD,
        "spoken by the model": [_calls(said) for r in records for said in r["spoken"] if said],
        "carried to Codex": [_calls(r["carried"]) for r in records if r["carried"]],
        "results shown otherwise": sum(len(record["results"]) for record in records),
        "nothing changed by": records[-1]["nothing_changed_by"] if records else [],
        "what Codex said of its calls": [said for said in map(_told, events) if said],
        "grade": {k: episode["grade"][k] for k in ("passed", "end", "calls", "errors", "cause")},
    }


def _calls(calls: list[Body]) -> str:
    return ", ".join(f"{call['name']}({call['arguments']})" for call in calls)


def _told(event: Body) -> str:
    item = event.get("item") or {}
    if event.get("type") != "item.completed":
        return ""
    what = item.get("tool") or item.get("command") or item.get("text") or ""
    return f"{item.get('type')}: {what}"[:120]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("codex", help="the installed program")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    parser.add_argument("--keep", type=Path, help="a folder for what each session left")
    args = parser.parse_args()
    version = subprocess.run([args.codex, "--version"], capture_output=True, text=True, check=True)
    sessions = []
    for shifts in (
        "",
        "tool_name_noise:3",
        "identity_erasure:3+format_drift:2",
        "parameter_rename:2",
    ):
        with tempfile.TemporaryDirectory() as folder:
            work = args.keep / (shifts or "none") if args.keep else Path(folder)
            work.mkdir(parents=True, exist_ok=True)
            sessions.append(play(args.codex, shifts, work))
            print(json.dumps(sessions[-1], indent=1))
    found = {"codex": version.stdout.strip(), "model": MODEL, "changed in its catalogue": PLAIN}
    found |= {"task": TASK, "sessions": sessions}
    (args.out / "transcript.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
