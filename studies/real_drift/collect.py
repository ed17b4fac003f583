"""Takes the tool lists of published versions of real MCP servers.

    python studies/real_drift/collect.py [--only NAME] [--again]

Every version in `servers.toml` is installed into a folder of its own (npm or pip, by name and
version, without its install scripts), started over standard input and output with dummy
credentials and, where the machine allows it, without network, and asked for its tools. What it says
goes to `lists/SERVER.json.gz`, with the licence of the package beside it; nothing is run but
`tools/list`. Lists that are there are kept, so a stopped run goes on where it was. Needs node, npm
and the network.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any, TextIO

from toolshift.core.files import pack
from toolshift.interop.mcp_client import Target, list_tools

HERE = Path(__file__).parent
LISTS = HERE / "lists"
WORK = "{work}"
CAPABILITIES = {"roots": {"listChanged": False}, "sampling": {}, "elicitation": {}}
SECONDS = 90


def slug(name: str) -> str:
    return name.lstrip("@").replace("/", "__")


def read_list(name: str) -> dict[str, Any]:
    """What is stored of a server; empty where nothing is.

    Each text of a licence stands once in `texts`; a version has its place there.
    """
    path = LISTS / f"{slug(name)}.json.gz"
    return json.loads(gzip.decompress(path.read_bytes())) if path.exists() else {}


def write_list(name: str, content: dict[str, Any]) -> None:
    LISTS.mkdir(exist_ok=True)
    raw = json.dumps(content, indent=0, ensure_ascii=False).encode()
    (LISTS / f"{slug(name)}.json.gz").write_bytes(pack(raw))


def install(name: str, about: dict[str, Any], version: str, where: Path) -> None:
    pins = about.get("pins", {}).get(version, [])
    if about.get("registry") == "pypi":
        python = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        command = [*python, "--target", str(where), f"{name}=={version}", *pins]
    else:
        quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--no-save"]
        command = ["npm", "install", "--prefix", str(where), f"{name}@{version}", *pins, *quiet]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode:
        raise RuntimeError(f"install: {done.stderr.strip()[-300:]}")


def command_of(name: str, about: dict[str, Any], version: str, where: Path) -> list[str]:
    arguments = about.get("arguments", [])
    if "script" in about:
        return [sys.executable, str(where / "bin" / about["script"]), *arguments]
    if about.get("registry") == "pypi":
        module = about.get("main", {}).get(version, about["module"])
        return [sys.executable, "-m", module, *arguments]
    package = where / "node_modules" / name
    said = json.loads((package / "package.json").read_text()).get("bin") or {}
    own = name.rpartition("/")[2]  # the command that `npx` starts
    named = said if isinstance(said, str) else said.get(own) or next(iter(said.values()))
    return ["node", str(package / about.get("main", {}).get(version, named)), *arguments]


def licence_of(name: str, about: dict[str, Any], where: Path) -> dict[str, str]:
    """The licence that a package declares, and the text that it brings."""
    if about.get("registry") == "pypi":
        (folder,) = where.glob(f"{name.replace('-', '_')}-*.dist-info")
        head = (folder / "METADATA").read_text(errors="replace")
        said = re.findall(r"^(?:License|License-Expression): (.{1,40})$", head, re.M)
        said += re.findall(r"^Classifier: License :: (.*)$", head, re.M)
        declared = said[0] if said else ""
    else:
        folder = where / "node_modules" / name
        declared = str(json.loads((folder / "package.json").read_text()).get("license") or "")
    texts = sorted(
        path
        for path in folder.rglob("*")
        if re.match(r"(?i)licen[cs]e|notice", path.name)
        and path.is_file()
        and "node_modules" not in path.relative_to(folder).parts
    )
    text = texts[0].read_text(errors="replace") if texts else ""
    return {"declared": declared, "text": text}


def alone(command: list[str]) -> list[str]:
    """A command without network but loopback, where the machine lets us."""
    quiet = ["unshare", "-rn", "sh", "-c"]
    if subprocess.run([*quiet, "true"], capture_output=True, check=False).returncode:
        return command
    return [*quiet, 'ip link set lo up 2>/dev/null; exec "$@"', "sh", *command]


def target_of(
    name: str, about: dict[str, Any], version: str, where: Path, work: Path, errors: TextIO
) -> Target:
    """An installed version as it is started: in a scratch folder, which is its home too."""
    here = str(work)
    command = [part.replace(WORK, here) for part in command_of(name, about, version, where)]
    given = {key: value.replace(WORK, here) for key, value in about.get("env", {}).items()}
    kept = ["env", "-i", f"PATH={os.environ['PATH']}", f"HOME={here}", "LANG=C.UTF-8"]
    kept += [f"{key}={value}" for key, value in given.items()]
    kept += [f"PYTHONPATH={where}"] if about.get("registry") == "pypi" else []
    return Target(command=tuple(alone([*kept, *command])), cwd=work, errors=errors)


def ask(
    name: str, about: dict[str, Any], version: str, where: Path, work: Path
) -> list[dict[str, Any]]:
    with (work / "stderr.txt").open("w") as errors:
        target = target_of(name, about, version, where, work, errors)
        listing = asyncio.wait_for(list_tools(target, CAPABILITIES), SECONDS)
        tools = asyncio.run(listing)
    plain = json.dumps(tools, ensure_ascii=False).replace(str(work), WORK)
    listed: list[dict[str, Any]] = json.loads(plain)
    return listed


def take(name: str, about: dict[str, Any], version: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        where, work = Path(folder) / "package", Path(folder) / "work"
        where.mkdir()
        work.mkdir()
        if name == "mcp-server-git":
            subprocess.run(["git", "init", "-q", str(work)], check=True)
        install(name, about, version, where)
        tools = ask(name, about, version, where, work)
        return {"licence": licence_of(name, about, where), "tools": tools}


def filed(known: dict[str, Any], texts: list[str]) -> dict[str, Any]:
    """A version as it is stored: the text of its licence goes to `texts`."""
    licence = known["licence"]
    if isinstance(licence["text"], str):
        if licence["text"] not in texts:
            texts.append(licence["text"])
        licence = {**licence, "text": texts.index(licence["text"])}
    return {**known, "licence": licence}


def innermost(fault: BaseException) -> BaseException:
    while isinstance(fault, BaseExceptionGroup):
        fault = fault.exceptions[0]
    return fault


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    parser.add_argument("--again", action="store_true", help="also where there is a list")
    options = parser.parse_args()
    servers = tomllib.loads((HERE / "servers.toml").read_text())
    for name, about in servers.items():
        if options.only not in name:
            continue
        stored = read_list(name)
        known, texts = stored.get("versions", {}), stored.get("texts", [])
        for version in about["versions"]:
            if version in known and not options.again:
                continue
            try:
                known[version] = take(name, about, version)
                print(f"{name} {version}: {len(known[version]['tools'])} tools", flush=True)
            except Exception as fault:
                print(f"{name} {version}: {str(innermost(fault))[:300]}", flush=True)
            order = {v: filed(known[v], texts) for v in about["versions"] if v in known}
            write_list(name, {"server": name, "texts": texts, "versions": order})


if __name__ == "__main__":
    main()
