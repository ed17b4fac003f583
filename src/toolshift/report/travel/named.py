"""What an agent of a run is called in the records of others."""

from __future__ import annotations

import re
from typing import Any

from toolshift.core.errors import UsageError
from toolshift.core.names import unknown
from toolshift.runs.run_folder import RunFolder

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_MODEL_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)+")
_RESERVED = ("unknown", "data")


def slug(name: str) -> str:
    """A name as one part of a path."""
    return _UNSAFE.sub("-", name).strip("-.") or "agent"


def agents_of(folder: RunFolder, agent: str = "") -> list[dict[str, Any]]:
    """What a manifest says of its agents."""
    found = [each for each in folder.manifest.agents if not agent or each["name"] == agent]
    if not found:
        names = (str(each["name"]) for each in folder.manifest.agents)
        raise UsageError(f"{folder.path}: " + unknown("agent", agent, names))
    return found


def model_id(about: dict[str, Any], given: str = "") -> str:
    """The `OWNER/NAME` of an agent."""
    if given:
        if not _is_model_id(given):
            raise UsageError(f"--model-id {given!r}: write it as OWNER/NAME, as in acme/agent-7")
        return given
    model = str(about.get("model", ""))
    if _is_model_id(model):
        return model
    name = str(about["name"])
    if about.get("spec") == name and not model and "source_sha256" not in about:
        return f"toolshift/{slug(name)}"
    raise UsageError(
        f"the owner of the agent {name} is not known: name it with --agent {name} --model-id "
        f"OWNER/NAME, as in acme/{slug(name)}"
    )


def _is_model_id(text: str) -> bool:
    parts = text.lower().split("/")
    return bool(_MODEL_ID.fullmatch(text)) and not any(part in _RESERVED for part in parts)
