"""The server of a run that goes on: its page, what is new, and what it refuses."""

from __future__ import annotations

import http.client
import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from browser import chromium, open_page, wait_for

import toolshift
from toolshift.core.errors import UsageError
from toolshift.report.html.serve import Server
from toolshift.runs.run_folder import RunFolder


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "first"
    agents = ["memorises_names", "oracle"]
    toolshift.evaluate(agents, shifts=["identity_erasure:2"], tasks=4, out=folder)
    return folder


@pytest.fixture
def growing(run: Path, tmp_path: Path) -> tuple[Path, list[str]]:
    """A run without an episode yet, and the lines that are to come."""
    folder = tmp_path / "growing"
    shutil.copytree(run, folder)
    log = folder / "episodes.jsonl"
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("")
    return folder, lines


@contextmanager
def served(*runs: Path) -> Iterator[Server]:
    with Server([RunFolder.read(run) for run in runs]) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield server
        server.shutdown()


def get(server: Server, path: str, host: str = "", origin: str = "") -> tuple[int, str]:
    port = server.server_address[1]
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    link.putrequest("GET", path, skip_host=True)
    link.putheader("Host", host or f"127.0.0.1:{port}")
    if origin:
        link.putheader("Origin", origin)
    link.endheaders()
    reply = link.getresponse()
    text = reply.read().decode()
    link.close()
    return reply.status, text


def rows(server: Server, start: int = 0, version: str = "") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(get(server, f"/live/rows?from={start}&version={version}")[1])
    return found


def append(folder: Path, text: str) -> None:
    with (folder / "episodes.jsonl").open("a") as file:
        file.write(text)


# -- following -----------------------------------------------------------------------------------


def test_the_page_follows_a_run_from_its_first_episode(growing: tuple[Path, list[str]]) -> None:
    folder, lines = growing
    with served(folder) as server, chromium() as browser:
        page = browser.new_page()
        wrong: list[str] = []
        page.on("console", lambda m: wrong.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda fault: wrong.append(str(fault)))
        page.goto(server.url)
        assert page.locator("h1").inner_text() == "This run has just begun"
        append(folder, "".join(lines[:9]))
        wait_for(page.locator("#ep-list a"), count=9)
        assert f"9 of {len(lines)} episodes" in page.locator("#ep-live").inner_text()
        page.wait_for_selector(".ep-row")
        append(folder, "".join(lines[9:]))
        wait_for(page.locator("#ep-list a"), count=len(lines))
        assert "complete" in page.locator("#ep-live").inner_text()
        page.select_option("#ep-agent", "memorises_names")
        page.locator("#ep-list a", has_text="identity erasure").first.click()
        page.wait_for_selector(".ep-guilty")
        assert "First divergence" in page.locator("#ep-steps").inner_text()
        assert wrong == []


def test_the_whole_report_is_served_with_every_trace(run: Path) -> None:
    failed = next(r for r in RunFolder.read(run).records() if not r.grade.passed)
    with served(run) as server, chromium() as browser:
        page, wrong = open_page(browser, f"{server.url}#episode-0-{failed.episode}")
        assert page.locator(".ep-guilty").count() == 1
        assert page.locator("#method").count() == 1
        assert wrong == []


def test_only_whole_lines_are_served_and_only_new_ones(growing: tuple[Path, list[str]]) -> None:
    folder, lines = growing
    with served(folder) as server:
        assert rows(server)["rows"] == []
        append(folder, lines[0] + lines[1][:100])
        first = rows(server)
        assert len(first["rows"]) == 1
        assert first["planned"] == len(lines)
        append(folder, lines[1][100:] + lines[2])
        news = rows(server, 1, first["version"])
        assert [row[0] for row in news["rows"]] == [json.loads(x)["episode"] for x in lines[1:3]]


def test_a_file_that_was_put_in_order_is_read_again(growing: tuple[Path, list[str]]) -> None:
    folder, lines = growing
    append(folder, "".join(reversed(lines)))
    with served(folder) as server:
        before = rows(server)
        RunFolder.read(folder).settle([json.loads(line)["episode"] for line in lines])
        after = rows(server, len(lines), before["version"])
        assert after["version"] != before["version"]
        assert [row[0] for row in after["rows"]] == [json.loads(line)["episode"] for line in lines]
        trace = json.loads(get(server, f"/live/trace/0-{after['rows'][0][0]}")[1])
        assert list(trace["traces"]) == [f"0-{after['rows'][0][0]}"]


def test_a_damaged_line_is_said(growing: tuple[Path, list[str]]) -> None:
    folder, lines = growing
    append(folder, lines[0] + "{nonsense}\n")
    with served(folder) as server:
        status, text = get(server, "/live/rows")
        assert status == 500
        assert "line 2 is damaged" in text


def test_two_runs_are_kept_apart(run: Path) -> None:
    with served(run, run) as server:
        found = rows(server)["rows"]
        assert len(found) == 2 * sum(1 for _ in RunFolder.read(run).records())
        assert {numbers[0] for _, numbers in found} == {0, 1}
        keys = json.loads(get(server, f"/live/trace/1-{found[-1][0]}")[1])["traces"]
        assert all(key.startswith("1-") for key in keys)


# -- who may ask, and for what -------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "/../manifest.json",
        "/..%2f..%2fetc%2fpasswd",
        "/live/trace/../../episodes.jsonl",
        "/live/trace/0-0000000000",
        "/episodes.jsonl",
        "//etc/passwd",
    ],
)
def test_nothing_else_is_served(run: Path, path: str) -> None:
    with served(run) as server:
        status, text = get(server, path)
        assert status == 404
        assert "steps" not in text


def test_only_its_own_address_is_answered(run: Path) -> None:
    with served(run) as server:
        port = server.server_address[1]
        assert server.server_address[0] == "127.0.0.1"
        for host in (
            "evil.example",
            f"evil.example:{port}",
            "127.0.0.1.evil.example",
            "a@localhost",
        ):
            assert get(server, "/live/rows", host)[0] == 403
        for host in (f"localhost:{port}", "127.0.0.1", f"[::1]:{port}"):
            assert get(server, "/live/rows", host)[0] == 200


def test_pages_of_other_origins_are_refused_before_the_page_is_made(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(run) as server:
        port = server.server_address[1]
        assert get(server, "/live/rows", origin=f"http://127.0.0.1:{port}")[0] == 200
        made: list[object] = []
        monkeypatch.setattr(server.book, "look", lambda: made.append(1))
        for origin in ("http://evil.example", "null", "http://127.0.0.1:1", "http://127.0.0.1"):
            assert get(server, "/", origin=origin)[0] == 403
        assert get(server, "/", host="[")[0] == 403
        assert not made


def test_an_address_that_cannot_be_had_is_explained(run: Path) -> None:
    with served(run) as server, pytest.raises(UsageError, match="another --port"):
        Server([RunFolder.read(run)], port=server.server_address[1])
