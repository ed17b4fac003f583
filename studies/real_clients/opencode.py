"""opencode, as npm has it, through the model proxy, in two dialects.

npm install opencode-ai@1.18.33
python studies/real_clients/opencode.py node_modules/.bin/opencode
"""

from __future__ import annotations

import argparse
import json
import subprocess
from pathlib import Path
from shlex import join

from clients import SAY, SHIFTS, completions, messages, play, study

OFF = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD")
SETTINGS = {f"OPENCODE_DISABLE_{name}": "1" for name in OFF}
FIRST = [("Executes a given bash command", SAY)]
PREFIX = "scene_"
DIALECTS = {"@ai-sdk/openai-compatible": completions, "@ai-sdk/anthropic": messages}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("opencode", help="the installed program")
    parser.add_argument("--keep", type=Path, help="a folder for the requests that the model saw")
    parser.add_argument("--only", help="one stack of shifts; nothing is written")
    args = parser.parse_args()
    opencode = str(Path(args.opencode).resolve())
    sessions = []
    for package, serve in DIALECTS.items():

        def command(url: str, folder: Path, package: str = package) -> tuple[str, dict[str, str]]:
            provider = {
                "npm": package,
                "options": {"baseURL": f"{url}/v1", "apiKey": "dummy"},
                "models": {"scripted": {"name": "scripted", "tool_call": True}},
            }
            settings = {
                "model": "proxy/scripted",
                "small_model": "proxy/scripted",
                "provider": {"proxy": provider},
                "autoupdate": False,
                "share": "disabled",
                "mcp": {
                    "scene": {"type": "remote", "url": "{env:TOOLSHIFT_MCP_URL}", "oauth": False}
                },
            }
            (folder / "opencode.json").write_text(json.dumps(settings, indent=1))
            # It reads its input to the end before it begins.
            words = ["sh", "-c", 'exec "$0" run "$1" < /dev/null', opencode, "{task}"]
            return join(words), SETTINGS

        for shifts in SHIFTS if args.only is None else (args.only,):
            keep = args.keep and args.keep / package
            session = play(command, serve, FIRST, PREFIX, shifts, keep)
            sessions.append({"package": package, **session})
    told = subprocess.run([opencode, "--version"], capture_output=True, text=True, check=True)
    if args.only is not None:
        print(json.dumps(sessions, indent=1))
        return
    study("opencode", {"opencode-ai": told.stdout.strip()}, sessions)


if __name__ == "__main__":
    main()
