"""The gate as JUnit XML, which continuous integration shows test by test."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from xml.etree import ElementTree as Tree

from toolshift.core.command_line import command
from toolshift.core.text import visible
from toolshift.measure.gate import Family, Gate, Inconclusive
from toolshift.measure.nothing_lost import NothingLost, loss_in_words

PLAN = "plan"

# All that XML 1.0 does not allow, even as a reference.
_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

NOTHING_LOST = "nothing_lost"  # the class of its cases


def junit(gate: Gate, inconclusive: Inconclusive = "") -> str:
    """One test case for each family of the gate, and one for each shift and for a sealed plan.

    A failure is a failed case, and what was not measured an error; what is inconclusive is skipped
    with its reason, or failed if that is how it counts. Shifts that are not gated never fail: one
    that is worse is skipped, with the sentence as the reason.
    """
    cases = [_case(one, inconclusive, gate.verdict) for one in (*gate.families, *gate.shifts)]
    if gate.plan:
        cases.insert(0, _plan_case(gate))
    name = f"toolshift gate: {gate.candidate} against {gate.baseline}"
    text = "\n".join([gate.sentence, *gate.notes])
    return suite_xml("toolshift gate", name, cases, _properties(gate), text)


def suite_xml(
    of: str, name: str, cases: Sequence[Tree.Element], properties: Mapping[str, str], text: str
) -> str:
    """A document of one suite with these cases."""
    counts = {
        "tests": str(len(cases)),
        "failures": str(sum(case.find("failure") is not None for case in cases)),
        "errors": str(sum(case.find("error") is not None for case in cases)),
        "skipped": str(sum(case.find("skipped") is not None for case in cases)),
        "time": "0",
    }
    suites = Tree.Element("testsuites", {"name": of, **counts})
    suite = Tree.SubElement(suites, "testsuite", {"name": legal(name), **counts})
    listed = Tree.SubElement(suite, "properties")
    for key, value in properties.items():
        Tree.SubElement(listed, "property", {"name": key, "value": legal(value)})
    suite.extend(cases)
    Tree.SubElement(suite, "system-out").text = legal(text)
    Tree.indent(suites)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + Tree.tostring(suites, "unicode") + "\n"


def losses_junit(found: NothingLost, run: str, inconclusive: Inconclusive = "") -> str:
    """A test case for each scene that fails now, with its cause and command, and one for all."""
    suite = Tree.Element("testsuite")
    for scene in found.changed:
        about = {"classname": f"toolshift.{NOTHING_LOST}", "time": "0"}
        case = Tree.SubElement(
            suite, "testcase", {**about, "name": legal(f"{scene.task} under {scene.shifts}")}
        )
        said = f"{loss_in_words(scene)}. {command('trace', run, scene.episode)}"
        tag = "failure" if scene.lost else "skipped"
        Tree.SubElement(case, tag, {"message": legal(said)})
    whole = {"classname": f"toolshift.{NOTHING_LOST}", "name": "all scenes", "time": "0"}
    case = Tree.SubElement(suite, "testcase", whole)
    verdict = found.verdict
    if verdict == "inconclusive" and inconclusive:
        verdict = inconclusive
    tags: dict[str, str] = {"fail": "failure", "error": "error"}
    if verdict in tags or found.verdict != "pass":
        tag = tags.get(verdict, "skipped")
        Tree.SubElement(case, tag, {"message": legal(found.sentence)})
    counts = {"tests": str(len(suite)), "time": "0"}
    for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        counts[name] = str(sum(case.find(tag) is not None for case in suite))
    name = legal(f"toolshift gate: {found.candidate} against {found.baseline}")
    suite.attrib.update({"name": name, **counts})
    suites = Tree.Element("testsuites", {"name": "toolshift gate", **counts})
    suites.append(suite)
    Tree.indent(suites)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + Tree.tostring(suites, "unicode") + "\n"


def _properties(gate: Gate) -> dict[str, str]:
    return {
        "verdict": gate.verdict,
        "baseline": gate.baseline,
        "candidate": gate.candidate,
        "margin": f"{gate.margin:g}",
        "confidence": f"{gate.confidence:g}",
        **({"plan": gate.plan} if gate.plan else {}),
    }


def _plan_case(gate: Gate) -> Tree.Element:
    """A case of its own for the sealed plan: an error where the run is not the one sealed."""
    about = {"classname": f"toolshift.{PLAN}", "name": "sealed", "time": "0"}
    case = Tree.Element("testcase", about)
    if gate.breaches:
        message = legal("; ".join(gate.breaches))
        Tree.SubElement(case, "error", {"message": message, "type": "error"})
    return case


def _case(family: Family, inconclusive: Inconclusive, of_all: str) -> Tree.Element:
    group = "family" if family.gated else "shift"
    about = {"classname": f"toolshift.{group}", "name": legal(family.label), "time": "0"}
    case = Tree.Element("testcase", about)
    message = legal(family.sentence)
    verdict = family.verdict
    if verdict == "inconclusive" and family.gated and inconclusive:
        verdict = inconclusive
    unmeasured = verdict == of_all == "error"  # where nothing is known, nothing is only skipped
    if unmeasured or (verdict in ("fail", "error") and family.gated):
        tag = "failure" if verdict == "fail" else "error"
        found = Tree.SubElement(case, tag, {"message": message, "type": family.verdict})
        found.text = legal(_evidence(family))
    elif family.verdict != "pass":
        reason = message if family.gated else f"not gated: {message}"
        Tree.SubElement(case, "skipped", {"message": reason})
    return case


def _evidence(family: Family) -> str:
    lost = f" Lost: {', '.join(family.examples)}." if family.examples else ""
    return (
        f"{family.sentence}. {family.tasks} tasks, {family.scored} of {family.scenes} scenes; "
        f"{family.lost} lost, {family.gained} gained.{lost}"
    )


def legal(text: str) -> str:
    """The text without what XML cannot hold or nobody can see."""
    return _ILLEGAL.sub("\ufffd", visible(text))
