"""A program on the AI SDK, as npm has it, through the model proxy, in two dialects.

    npm install --prefix DIR ai@7.0.173 @ai-sdk/mcp@2.0.99 \\
        @ai-sdk/openai-compatible@3.0.92 @ai-sdk/anthropic@4.0.105
    python studies/real_clients/ai_sdk.py DIR

It needs node 22 or later, which `--node` may name.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path
from shlex import join

from clients import SAY, SHIFTS, completions, messages, play, study

HERE = Path(__file__).parent / "ai_sdk"
FIRST = [("Runs a command in a shell", SAY)]
PREFIX = ""
DIALECTS = {"openai": completions, "anthropic": messages}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("installed", type=Path, help="the folder with node_modules")
    parser.add_argument("--node", default="node", help="node, 22 or later")
    parser.add_argument("--keep", type=Path, help="a folder for the requests that the model saw")
    parser.add_argument("--only", help="one stack of shifts; nothing is written")
    args = parser.parse_args()
    program = args.installed.resolve() / "agent.mjs"  # beside its packages, where node looks
    shutil.copyfile(HERE / "agent.mjs", program)
    sessions = []
    for name, serve in DIALECTS.items():

        def command(url: str, folder: Path, name: str = name) -> tuple[str, dict[str, str]]:
            words = [args.node, str(program), "{mcp_url}", "{task}"]
            return join(words), {"MODEL_API": name, "MODEL_URL": f"{url}/v1"}

        for shifts in SHIFTS if args.only is None else (args.only,):
            keep = args.keep and args.keep / name
            session = play(command, serve, FIRST, PREFIX, shifts, keep)
            sessions.append({"dialect": name, **session})
    if args.only is not None:
        print(json.dumps(sessions, indent=1))
        return
    versions = json.loads((HERE / "package.json").read_text())["dependencies"]
    for package, version in versions.items():
        found = args.installed / "node_modules" / package / "package.json"
        if json.loads(found.read_text())["version"] != version:
            raise SystemExit(f"{package} is not of the version {version}")
    study("ai_sdk", versions, sessions)


if __name__ == "__main__":
    main()
