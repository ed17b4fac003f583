"""What the servers begin with in every episode: called with the folder of the episode."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

GRAPH = [
    {
        "type": "entity",
        "name": "Ana Brandt",
        "entityType": "person",
        "observations": ["plays the cello"],
    },
    {
        "type": "entity",
        "name": "Jon Weber",
        "entityType": "person",
        "observations": ["drives a van"],
    },
    {
        "type": "entity",
        "name": "Harbor Lab",
        "entityType": "company",
        "observations": ["founded in 1987", "has 40 employees"],
    },
    {
        "type": "relation",
        "from": "Ana Brandt",
        "to": "Harbor Lab",
        "relationType": "works at",
    },
]
WHO = {"NAME": "Mara Lind", "EMAIL": "mara@example.com", "DATE": "2026-03-02T09:00:00+0000"}


def memory(folder: Path) -> None:
    """A graph of two people and a company."""
    lines = "\n".join(json.dumps(each) for each in GRAPH)
    (folder / "memory.jsonl").write_text(lines + "\n")


def repository(folder: Path) -> None:
    """A repository of two commits, a second branch, and a change that is not staged."""
    repo = folder / "repo"
    repo.mkdir()
    who = {
        f"GIT_{role}_{key}": said for role in ("AUTHOR", "COMMITTER") for key, said in WHO.items()
    }
    known = {**os.environ, **who, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}

    def git(*words: str) -> None:
        subprocess.run(["git", *words], cwd=repo, env=known, check=True, capture_output=True)

    git("init", "-b", "main")
    (repo / "menu.txt").write_text("tea 2\nmilk 1\n")
    git("add", ".")
    git("commit", "-m", "Start the menu")
    git("branch", "winter")
    (repo / "staff.txt").write_text("Mara\nJon\n")
    git("add", ".")
    git("commit", "-m", "Add the staff list")
    (repo / "menu.txt").write_text("tea 3\nmilk 1\n")
