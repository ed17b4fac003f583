"""A real browser for tests of pages: Debian's or anyone's Chromium, without a window."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
WAIT = 30_000
"""Milliseconds after which a page that does not come is a failure."""


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser; the test is skipped where there is none."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("there is no chromium")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


def open_page(browser: Any, url: str, **options: Any) -> tuple[Any, list[str]]:
    """A page, and the list that its errors and requests to other places go to."""
    page = browser.new_page(**options)
    page.set_default_timeout(WAIT)
    wrong: list[str] = []
    page.on("console", lambda m: wrong.append(m.text) if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda fault: wrong.append(str(fault)))
    page.on("request", lambda request: _note(request.url, url, wrong))
    page.goto(url)
    page.wait_for_selector("#ep-steps > *")
    return page, wrong


def wait_for(found: Any, text: str = "", count: int | None = None) -> None:
    """Waits until an element says this, or until there are so many.

    A page's policy may forbid what `wait_for_function` does.
    """
    from playwright.sync_api import expect

    if count is not None:
        expect(found).to_have_count(count, timeout=WAIT)
    else:
        expect(found).to_contain_text(text, timeout=WAIT)


def _note(asked: str, url: str, wrong: list[str]) -> None:
    base = url.partition("#")[0]
    if not asked.startswith(("data:", "blob:", base)):
        wrong.append(f"asks for {asked}")
