"""What the terminal says of void episodes and of undefined changes, the page says too."""

from __future__ import annotations

import re
from io import StringIO
from pathlib import Path

import pytest
from msgspec.structs import replace
from rich.console import Console
from surfing import run_into

from toolshift.api import report_of
from toolshift.measure.report import Report
from toolshift.report.html.page import make_page
from toolshift.report.tables import change_all, shift_table
from toolshift.report.terminal import as_text
from toolshift.runs.run_folder import RunFolder


def failing(path: Path, clean: bool, keep: int, void: bool) -> RunFolder:
    """A run of which so many episodes of each three of one arm fail, or are void."""
    run_into(path, "memorises_names", "oracle", shifts=("identity_erasure", "redirect"), tasks=12)
    folder = RunFolder.read(path)
    records = list(folder.records())
    for place, record in enumerate(records):
        if bool(folder.cell(record).shifts) != clean and place % 3 >= keep:
            grade = replace(record.grade, void=void, passed=False, cause="infrastructure")
            records[place] = replace(record, grade=grade)
    folder.rewrite(records)
    return RunFolder.read(path)


@pytest.fixture(scope="module", params=[False, True], ids=["shifted", "clean"])
def folder(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> RunFolder:
    return failing(tmp_path_factory.mktemp("runs") / "run", request.param, 2, void=True)


@pytest.fixture(scope="module")
def report(folder: RunFolder) -> Report:
    return report_of(folder)


@pytest.fixture(scope="module")
def page(folder: RunFolder) -> str:
    return make_page([folder])


def words(markup: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", markup)).replace("−", "-")


def first_table(page: str) -> str:
    start = page.index('id="tiers-by-agents"')
    return words(page[start : page.index("</table>", start)])


def test_changes_with_voids_as_failures_are_those_of_the_terminal(
    report: Report, page: str
) -> None:
    text, table = as_text(report, 200, details=True), first_table(page)
    said = [change_all(row) for each in report.agents for row in each.tiers]
    assert any(said)
    for each in filter(None, said):
        assert each.replace("-0", "0") in text.replace("-0", "0")
        assert re.search(rf"{re.escape(each)}(?!\d)", table), (each, table)
    assert table.count("all ") == len(list(filter(None, said)))
    assert "All: the change with void episodes as failures" in words(page)


def test_clean_accuracy_and_its_bounds_are_those_of_the_terminal(report: Report, page: str) -> None:
    table = first_table(page)
    for each in report.agents:
        row = each.clean
        bounds = "({:.0f}-{:.0f})".format(*(100 * bound for bound in row.bounds))
        assert (bounds in as_text(report, 200, details=True)) == row.void_matters
        assert (bounds.replace("-", "% to ").replace(")", "%)") in table) == row.void_matters
        assert f"{100 * row.accuracy.estimate:.0f}%" in table


def test_what_is_kept_where_no_change_is_defined(tmp_path: Path) -> None:
    folder = failing(tmp_path / "run", clean=True, keep=1, void=False)
    rows = [row for each in report_of(folder).agents for row in each.tiers]
    assert all(not row.defined and row.retention.n for row in rows)
    page = make_page([folder])
    for row in rows:
        assert f"keeps {100 * row.retention.estimate:.0f}%" in first_table(page)
    assert "Keeps: accuracy on the tasks passed clean" in words(page)


@pytest.mark.parametrize("width", [60, 80, 100])
def test_no_name_of_an_agent_and_no_cause_is_squeezed(report: Report, width: int) -> None:
    name = "an_agent_with_a_long_name,temperature=0"
    named = replace(report, agents=tuple(replace(one, name=name) for one in report.agents))
    lines = as_text(named, width, details=True).splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("ToolShift "))
    assert any(name in line for line in lines[start + 1 : start + 4])
    heads = [n for n, line in enumerate(lines) if "main cause" in line]
    assert heads or width < 80
    for head in heads:
        rows = lines[head : lines.index("", head)] if "" in lines[head:] else lines[head:]
        cut = [row for row in map(str.rstrip, rows) if len(row) == width and row[-1].isalpha()]
        assert not cut, cut


def test_a_long_label_is_folded_and_the_cause_beside_it_is_whole(report: Report) -> None:
    """A column that cannot shrink took the room of the last one, whose end was not shown."""
    row = report.agent("memorises_names").shifts[0]
    stacked = replace(
        row,
        label="description_paraphrase+identity_erasure",
        causes={"answered_without_evidence": 1},
    )
    console = Console(width=90, file=StringIO())
    console.print(shift_table([stacked], []))
    lines = console.file.getvalue().splitlines()
    [first] = [place for place, line in enumerate(lines) if "description_paraphrase+ " in line]
    assert lines[first + 1].split()[0] == "identity_erasure"
    assert lines[first].split()[-2:] == ["answered", "without"]
    assert lines[first + 1].split()[1:] == ["evidence", "100%"]
