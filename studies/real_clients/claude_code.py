"""Claude Code, as npm has it, through the model proxy before a scripted model of Messages.

npm install @anthropic-ai/claude-code@2.1.197
python studies/real_clients/claude_code.py node_modules/.bin/claude
"""

from __future__ import annotations

import argparse
import json
import subprocess
from pathlib import Path
from shlex import join

from clients import NEEDED, SAY, SHIFTS, messages, play, study

SETTINGS = {
    "ANTHROPIC_API_KEY": "dummy",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_AUTOUPDATER": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "MCP_CONNECTION_NONBLOCKING": "false",  # the first request waits for the scene's tools
}
FIRST = [("Executes a bash command", SAY)]
PREFIX = "mcp__scene__"
NAMES = ",".join(f"{PREFIX}{name}" for name in (*NEEDED, "final_answer"))
SEARCH = [("Fetches full schema definitions", {"query": f"select:{NAMES}", "max_results": 9})]
OTHERS = [
    ("Launch a new agent", {"description": "A try", "prompt": "Say done."}),
    ("Search the web", {"query": "weather"}),
]
FURTHER_SHIFTS = "tool_name_noise:3+format_drift:2"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("claude", help="the installed program")
    parser.add_argument("--keep", type=Path, help="a folder for the requests that the model saw")
    parser.add_argument("--only", help="one stack of shifts; nothing is written")
    args = parser.parse_args()
    claude = str(Path(args.claude).resolve())
    servers = json.dumps({"mcpServers": {"scene": {"type": "http", "url": "{mcp_url}"}}})

    def command(url: str, folder: Path) -> tuple[str, dict[str, str]]:
        words = [claude, "-p", "{task}", "--append-system-prompt", "{system}"]
        words += ["--strict-mcp-config", "--mcp-config", servers]
        words += ["--allowedTools", "mcp__scene,Bash(echo:*),Agent,WebSearch"]
        return join(words), {**SETTINGS, "ANTHROPIC_BASE_URL": url}

    def searching(url: str, folder: Path) -> tuple[str, dict[str, str]]:
        words, settings = command(url, folder)
        return words, {**settings, "ENABLE_TOOL_SEARCH": "true"}

    stacks = SHIFTS if args.only is None else (args.only,)
    sessions = [play(command, messages, FIRST, PREFIX, shifts, args.keep) for shifts in stacks]
    if args.only in (None, FURTHER_SHIFTS):
        found = play(searching, messages, SEARCH, PREFIX, FURTHER_SHIFTS, args.keep)
        sessions.append({"ENABLE_TOOL_SEARCH": "true", **found})
        found = play(command, messages, OTHERS, PREFIX, FURTHER_SHIFTS, args.keep)
        sessions.append({"own agents and search": True, **found})
    told = subprocess.run([claude, "--version"], capture_output=True, text=True, check=True)
    if args.only is not None:
        print(json.dumps(sessions, indent=1))
        return
    study("claude_code", {"@anthropic-ai/claude-code": told.stdout.split()[0]}, sessions)


if __name__ == "__main__":
    main()
