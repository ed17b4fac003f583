"""The gate as JUnit XML and as Markdown: whatever the names are, it can be read back."""

from __future__ import annotations

from math import nan
from xml.etree import ElementTree as Tree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolshift.measure.gate import Family, Gate
from toolshift.measure.statistics import Interval
from toolshift.report.gate_markdown import gate_markdown
from toolshift.report.junit import junit


def family(verdict: str, label: str = "perception", gated: bool = True, why: str = "why") -> Family:
    return Family(
        label=label,
        gated=gated,
        verdict=verdict,  # type: ignore[arg-type]
        sentence=f"{verdict}: {why}",
        scenes=40,
        scored=38,
        tasks=20,
        baseline=0.9,
        candidate=0.8,
        change=Interval(-0.1, -0.2, 0.0, "exact", 20),
        worst=None,
        lost=3,
        gained=1,
        more_tasks=None,
        examples=["0a1b"],
    )


def gate(*families: Family, name: str = "agent", shifts: tuple[Family, ...] = ()) -> Gate:
    return Gate(
        verdict="fail",
        sentence=f"fail: {name}",
        baseline="main",
        candidate=name,
        margin=5,
        max_void=5,
        confidence=0.9,
        families=list(families),
        shifts=list(shifts),
        notes=[f"note {name}"],
    )


def cases(xml: str) -> dict[str, list[str]]:
    """What is inside each test case, by class and name."""
    root = Tree.fromstring(xml.encode())
    return {
        f"{case.get('classname')}.{case.get('name')}": [child.tag for child in case]
        for case in root.iter("testcase")
    }


def test_each_verdict_is_what_ci_shows() -> None:
    shifts = (family("fail", "redirect", gated=False), family("pass", "typos", gated=False))
    found = gate(
        family("pass", "clean"),
        family("fail"),
        family("inconclusive", "overall"),
        family("error", "reasoning"),
        shifts=shifts,
    )
    xml = junit(found)
    assert cases(xml) == {
        "toolshift.family.clean": [],
        "toolshift.family.perception": ["failure"],
        "toolshift.family.overall": ["skipped"],
        "toolshift.family.reasoning": ["error"],
        "toolshift.shift.redirect": ["skipped"],
        "toolshift.shift.typos": [],
    }
    suite = Tree.fromstring(xml.encode()).find("testsuite")
    assert suite is not None
    counted = [suite.get(name) for name in ("tests", "failures", "errors", "skipped")]
    assert counted == ["6", "1", "1", "2"]
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert failure.get("message") == "fail: why"
    assert "0a1b" in (failure.text or "")
    assert "not gated: fail: why" in xml


@pytest.mark.parametrize(
    ("counts_as", "inside"), [("fail", ["failure"]), ("pass", []), ("", ["skipped"])]
)
def test_an_inconclusive_family_counts_as_it_is_told(counts_as: str, inside: list[str]) -> None:
    xml = junit(gate(family("inconclusive")), counts_as)  # type: ignore[arg-type]
    found = cases(xml)["toolshift.family.perception"]
    assert found == (["skipped"] if counts_as == "pass" else inside)


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet=st.characters(exclude_categories=[]), max_size=30))
def test_any_string_makes_valid_xml(text: str) -> None:
    xml = junit(gate(family("fail", text, why=text), family("inconclusive", text), name=text))
    assert len(cases(xml)) >= 1


def test_control_characters_and_markup_are_kept_out_of_xml() -> None:
    text = "\x00\x1b[31m<b>&\ud800\ufffe]]>"
    root = Tree.fromstring(junit(gate(family("fail", text))).encode())
    case = next(root.iter("testcase"))
    assert case.get("name") == "[U+0000][ESC][31m<b>&[U+D800]\ufffd]]>"


def test_markdown_shows_names_as_they_stand() -> None:
    name = "a|b`c`<img src=x>\n# heading [x](y) @someone"
    page = gate_markdown(gate(family("fail", name), name=name), "runs/`new`")
    assert "<img" not in page.replace(r"\<img", "")
    assert "\n# heading" not in page
    assert r"a\|b\`c\`\<img src=x\> \# heading \[x\]\(y\) \@someone" in page
    assert "toolshift trace 'runs/ new ' EPISODE" in page
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    widths = {len(row.replace(r"\|", "").split("|")) for row in rows}
    assert widths == {11}


def test_markdown_says_the_verdict_and_leaves_out_what_is_not_known() -> None:
    nothing = family("inconclusive", "clean")
    nothing = Family(**{**{n: getattr(nothing, n) for n in nothing.__struct_fields__},
                        "baseline": nan, "candidate": nan,
                        "change": Interval(nan, nan, nan, "exact", 0)})  # fmt: skip
    page = gate_markdown(gate(nothing, shifts=(family("fail", "redirect", gated=False),)))
    assert page.startswith("## ToolShift gate: fail\n")
    assert "| clean | inconclusive | 20 | 38 of 40 |  |  | not known | 3 | 1 |" in page
    assert "nan" not in page
    assert "<details>" in page
