"""Three published MCP servers, as worlds and through the proxy; skipped where not installed.

Install them as studies/mcp_servers/README.md says, and name the folder in TOOLSHIFT_MCP_SERVERS, or
have their programs on the PATH.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest
from worlds.own.test_own import called, played, scenes

from toolshift.interop.mcp_client import list_tools
from toolshift.runs.own_checking import check_tasks
from toolshift.shifts.registry import apply
from toolshift.worlds.own import load

STUDY = Path(__file__).parents[2] / "studies" / "mcp_servers"
NAMES = ("memory", "thinking", "git")
SHIFTS = ("semantic_rename:3", "parameter_rename:3", "format_drift:2", "transient_error:2")


@pytest.fixture(scope="module")
def study() -> ModuleType:
    """The script of the study, as a module."""
    spec = spec_from_file_location("mcp_servers_study", STUDY / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look their module up there
    spec.loader.exec_module(module)
    return module


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A server that can be started."""
    folder = os.environ.get("TOOLSHIFT_MCP_SERVERS")
    if folder:
        bins = (f"{folder}/node_modules/.bin", f"{folder}/git/bin", os.environ["PATH"])
        monkeypatch.setenv("PATH", os.pathsep.join(bins))
    program = {
        "memory": "mcp-server-memory",
        "thinking": "mcp-server-sequential-thinking",
        "git": "mcp-server-git",
    }[str(request.param)]
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    return str(request.param)


def test_a_published_server_is_a_world_of_five_tasks(name: str) -> None:
    world = load(STUDY / f"{name}.yaml")
    found = check_tasks(world)
    assert [(task.state, task.said) for task in found] == [("ok", "")] * 5
    for scene in scenes(world):
        assert played(scene).passed, scene.task.lineage
        assert not called(scene).passed
        assert not called(scene, answer="done").passed
    assert played(apply(scenes(world)[0], "identity_erasure", 2)).passed


def test_a_published_server_behind_the_proxy(name: str, study: ModuleType) -> None:
    server = next(each for each in study.SERVERS if each.name == name)
    with server.fresh() as target:
        listed = asyncio.run(list_tools(target))
    for stack in SHIFTS:
        row = study.proxied(server, listed, stack)
        assert not study.wrong(row), (stack, row)
    if name == "git":  # answers in sentences leave a format nothing to drift in
        row = study.proxied(study.SENTENCES, listed, "format_drift:2")
        assert row["changed nothing"]
        assert not study.wrong(row)
