"""Releases of a server that invite to a wrong call; each line of `adversarial.jsonl` is one.

`was` and `now` are the tools before and after, `call` is what an agent that knows `was` calls, and
`answer` is what the server says to exactly that call.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("adversarial.jsonl")
RELEASES: list[dict[str, Any]] = [
    json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()
]


def name_of(release: dict[str, Any]) -> str:
    """How a test is named."""
    return f"{release['kind']}: {release['call']['tool']}"
