"""Reads a page in a real browser, and keeps what it complained of and asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

import toolshift
from toolshift.report.html import write_page
from toolshift.runs.run_folder import RunFolder


def run_into(folder: Path, *agents: Any, **asked: Any) -> Path:
    """Runs agents, and returns the folder."""
    toolshift.evaluate(list(agents), out=folder, **asked)
    return folder


def written(out: Path, *runs: Path) -> Path:
    """Writes the page of some runs, and returns it."""
    write_page([RunFolder.read(run) for run in runs], out)
    return out


class Surfer:
    """Opens pages, and keeps what they complained of and asked for."""

    def __init__(self, browser: Any) -> None:
        self.browser = browser

    @contextmanager
    def page(self, file: Path, **context: Any) -> Iterator[Any]:
        """An opened page; it must make no error and send no request but for itself."""
        shown = self.browser.new_context(**context)
        page = shown.new_page()
        complaints: list[str] = []
        page.on("console", lambda said: complaints.append(f"{said.type}: {said.text}"))
        page.on("pageerror", lambda fault: complaints.append(f"error: {fault}"))
        page.on("dialog", lambda dialog: (complaints.append("a dialog"), dialog.dismiss()))
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(file.as_uri())
        if context.get("java_script_enabled", True):
            page.wait_for_selector("html[data-ready=yes]", state="attached", timeout=60_000)
        yield page
        shown.close()
        assert complaints == [], complaints
        assert {url for url in asked if not url.startswith("data:")} == {file.as_uri()}

    def faults(self, page: Any) -> list[str]:
        """What axe-core calls serious or critical on a page."""
        axe = files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")
        page.evaluate(axe)  # the page's own policy forbids a further script element
        found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        return [
            f"{each['id']}: {node['html'][:200]} {node['failureSummary'][:300]}"
            for each in found["violations"]
            if each["impact"] in ("serious", "critical")
            for node in each["nodes"]
        ]
