"""The official conformance tests of MCP, against `toolshift serve` and through `toolshift proxy`.

    python tests/connect/conformance/run.py [--out studies/conformance/results.json]

Both eras of the protocol are tested: the scenarios that a revision requires, as the tests' authors
have frozen them. Through the proxy stands `server.py`, which has all that the tests ask for, and
which is tested without it too. What fails through the proxy and not without it is the proxy's.
`expected.toml` says what is expected to differ, and why. Exit code 1 where something else fails,
and where something that is expected to fail passes.

The tests come by npm, with a Node of their own, into `build/conformance`. Without npm nothing is
run, and the exit code is 0.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from toolshift.core.http import httpx

ROOT = Path(__file__).resolve().parents[3]
HERE = Path(__file__).parent
TESTS, NODE = "@modelcontextprotocol/conformance@0.2.0-alpha.12", "node@22"
ERAS = ("2025-11-25", "2026-07-28")
REFERENCE = (sys.executable, str(HERE / "server.py"))
TOOLSHIFT = (sys.executable, "-m", "toolshift")
SHIFT = "format_drift:1"
"""It sends each list and each call through the layers, and leaves the names that the tests call."""
TOKEN = "conformance"
PATIENCE = 120
"""Seconds for a server to listen."""
FAILED = ("FAILURE",)
Failures = dict[str, list[str]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=ROOT / "build/conformance")
    parser.add_argument("--out", type=Path, default=None)
    asked = parser.parse_args()
    program = installed(asked.folder)
    if program is None:
        print("npm is not there: the conformance tests of MCP are not run")
        return 0
    expected = tomllib.loads((HERE / "expected.toml").read_text())
    eras: dict[str, Any] = {era: {} for era in ERAS}
    direct: dict[str, Failures] = {}
    for name, address in addresses():
        for era in ERAS:
            ran = run(program, era, address)
            known = direct[era] if name.startswith("proxy") else {}
            if name == "reference":
                direct[era] = ran["failed"]
            eras[era][name] = row = judged(ran, known, expected.get(name, {}), era)
            say(f"{era} {name}", row)
    if asked.out:
        asked.out.parent.mkdir(parents=True, exist_ok=True)
        found = {"tests": TESTS, "eras": eras}
        asked.out.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
    rows = [row for those in eras.values() for row in those.values()]
    return 1 if any(row["unexpected"] or row["passes_now"] for row in rows) else 0


def say(name: str, row: dict[str, Any]) -> None:
    print(
        f"{name}: {row['passed']} passed, {row['warnings']} warnings, {row['expected']} failed as "
        f"expected, {len(row['unexpected'])} otherwise",
        flush=True,
    )
    for kind, said in (("unexpected", "failed"), ("passes_now", "in expected.toml, but passes")):
        for one in row[kind]:
            print(f"  {said}: {one}", flush=True)


def installed(folder: Path) -> Path | None:
    """The program of the tests, which is fetched where it is not there; None without npm."""
    program = folder / "node_modules/.bin/conformance"
    npm = shutil.which("npm")
    stamp = folder / "versions"
    wanted = f"{TESTS} {NODE}"
    if program.exists() and stamp.exists() and stamp.read_text() == wanted:
        return program
    if npm is None:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    command = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(folder), TESTS, NODE]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    stamp.write_text(wanted)
    return program


# -- what is tested ------------------------------------------------------------------------------


def addresses() -> Iterator[tuple[str, str]]:
    """Each server in turn, running while its address is out."""
    port = free_port()
    url = f"http://127.0.0.1:{port}/mcp"
    with started((*REFERENCE, "--http", str(port)), port):
        yield "reference", url
    for name, shifts in (("proxy", ()), ("proxy, shifted", ("--shift", SHIFT))):
        port = free_port()
        words = (
            "proxy",
            *shifts,
            "--skip-inapplicable",
            "--port",
            str(port),
            f"mcp:{shlex.join(REFERENCE)}",
        )
        with started((*TOOLSHIFT, *words), port):
            yield name, f"http://127.0.0.1:{port}/mcp"
    port = free_port()
    with started((*TOOLSHIFT, "serve", "--port", str(port), "--control-token", TOKEN), port):
        opened = httpx.post(
            f"http://127.0.0.1:{port}/episodes",
            json={"task": "poi/visit/3"},
            headers={"authorization": f"Bearer {TOKEN}"},
            timeout=60,
            trust_env=False,
        )
        yield "serve", opened.json()["mcp_url"]


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def started(command: tuple[str, ...], port: int) -> Iterator[None]:
    with (
        tempfile.TemporaryFile() as said,
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said) as process,
    ):
        try:
            end = time.monotonic() + PATIENCE
            while True:
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                if process.poll() is not None or time.monotonic() > end:
                    said.seek(0)
                    raise SystemExit(f"{command} does not serve: {said.read().decode()[-2000:]}")
                time.sleep(0.1)
            yield
        finally:
            process.terminate()


def run(program: Path, era: str, url: str) -> dict[str, Any]:
    """What passes and fails at an address."""
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"  # where its Node is
    with tempfile.TemporaryDirectory() as out:
        command = [str(program), "server", "--url", url, "--requirements", era, "-o", out]
        subprocess.run(
            [*command, "--timeout", "30000"],
            env={**os.environ, "PATH": path},
            check=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        found = [checks_of(each) for each in sorted(Path(out).iterdir())]
    if not found:
        raise SystemExit(f"the conformance tests did not run at {url}")
    checks = [(name, one) for name, those in found for one in those]
    failed: Failures = {}
    for name, one in checks:
        if one["status"] in FAILED:
            failed.setdefault(name, []).append(one["id"])
    return {
        "passed": sum(one["status"] == "SUCCESS" for _, one in checks),
        "warnings": sum(one["status"] == "WARNING" for _, one in checks),
        "failed": {name: sorted(set(those)) for name, those in sorted(failed.items())},
    }


def checks_of(folder: Path) -> tuple[str, list[dict[str, Any]]]:
    """The name of a scenario and its checks, from the folder of its results."""
    name = re.sub(r"-\d{4}-\d\d-\d\dT.*", "", folder.name.removeprefix("server-"))
    found: list[dict[str, Any]] = json.loads((folder / "checks.json").read_text())
    return name, found


def judged(
    ran: dict[str, Any], without: Failures, expected: dict[str, Any], era: str
) -> dict[str, Any]:
    """What has failed, by whether it was to be expected.

    Args:
        ran: what passed and failed.
        without: what fails without the proxy, and so is not its doing.
        expected: for each reason the scenarios that fail for it, which may have wildcards.
        era: a reason may hold in one of them only.

    Returns:
        The counts, what has failed unexpectedly, and what was expected to fail and has passed.
    """
    patterns = [
        pattern
        for one in expected.get("differs", ())
        if era in one.get("eras", ERAS)
        for pattern in one["scenarios"]
    ]
    failed = {
        f"{name}/{check}"
        for name, checks in ran["failed"].items()
        for check in checks
        if check not in without.get(name, ())
    }
    met = {each for each in failed for pattern in patterns if fnmatch(each, pattern)}
    unmet = [p for p in patterns if not any(fnmatch(each, p) for each in failed)]
    return {
        "passed": ran["passed"],
        "warnings": ran["warnings"],
        "expected": len(met),
        "unexpected": sorted(failed - met),
        "passes_now": unmet,
    }


if __name__ == "__main__":
    sys.exit(main())
