"""One page from one or several runs: a single file that asks nothing of any network."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from toolshift.core.errors import UsageError
from toolshift.core.files import read_bytes, save
from toolshift.measure.diagnosis import is_loss, words
from toolshift.measure.metrics import Measures
from toolshift.measure.report import AgentReport, Report, make_report
from toolshift.report import first_screen
from toolshift.report import summary as story
from toolshift.report.figures import figure, foreign, safe_json, seconds, shown
from toolshift.report.html import charts, flow, method
from toolshift.report.html import comparison as versus
from toolshift.report.html.episodes import KEEP, Fragment, fragment
from toolshift.report.html.subjects import Kept, Subject, run_name, subjects_of
from toolshift.runs.run_folder import RunFolder

HERE = Path(__file__).parent
LIBRARIES = ("vega.min.js.gz", "vega-lite.min.js.gz", "vega-embed.min.js.gz")
POLICY = (
    "default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)
T = TypeVar("T")
Watch = Callable[[int, int], None]


def write_page(
    folders: Sequence[RunFolder],
    out: Path,
    reports: Sequence[Report] = (),
    watch: Watch = lambda done, total: None,
    keep: int = KEEP,
) -> None:
    """Writes the page of some runs."""
    content = make_page(folders, reports, watch, keep).encode()
    save(out, content)


def make_page(
    folders: Sequence[RunFolder],
    reports: Sequence[Report] = (),
    watch: Watch = lambda done, total: None,
    keep: int = KEEP,
) -> str:
    """The page as text; see `write_page`."""
    if not folders:
        raise UsageError("a page needs at least one run")
    step = _counter(folders, watch)
    kept = [step(f if isinstance(f, Kept) else Kept(f)) for f in folders]
    made = [step(report) for report in reports] or [
        step(
            make_report(
                run.plan,
                run.records(),
                run.manifest.agents,
                run.manifest.task_ids,
                run.manifest.design,
            )
        )
        for run in kept
    ]
    subjects = subjects_of(kept, made)
    if not subjects:
        raise UsageError(f"{folders[0].path}: no episode has been run, so there is no report")
    episodes = step(fragment(kept, keep))
    drawn: dict[str, Any] = {}
    view = {
        "runs": [_run(run, report) for run, report in zip(kept, made, strict=True)],
        "subjects": subjects,
        "tier_names": _tier_names(subjects),
        "small": all(subject.report.grid is not None for subject in subjects),
        "title": _title(subjects),
        "versus": versus.contests(subjects, kept, step),
        "episodes": episodes,
    }
    view["axis"], view["points"] = versus.checkpoints(subjects)
    _draw(drawn, view)
    return _render(view, drawn, episodes)


def _counter(folders: Sequence[RunFolder], watch: Watch) -> Callable[[T], T]:
    """A function that passes on what a step has made, and tells how far the page is."""
    agents = sum(len(folder.manifest.agents) for folder in folders)
    done, total = 0, 2 * len(folders) + agents

    def step(made: T) -> T:
        nonlocal done
        done += 1
        watch(done, total)
        return made

    watch(done, total)
    return step


def _run(folder: Kept, report: Report) -> dict[str, Any]:
    return {
        "name": run_name(folder),
        "report": report,
        "manifest": folder.manifest,
        "facts": method.facts(folder),
        "commands": method.commands(folder),
        "settings": {
            str(agent["name"]): method.settings(agent) for agent in folder.manifest.agents
        },
    }


def _tier_names(subjects: Sequence[Subject]) -> list[str]:
    """The tiers that any agent was run in, in their order."""
    return list(dict.fromkeys(row.label for s in subjects for row in s.report.tiers))


def _title(subjects: Sequence[Subject]) -> str:
    """The headline of the page."""
    if all(subject.report.grid is not None for subject in subjects):
        return first_screen.headline([subject.report for subject in subjects])
    if len(subjects) == 1:
        return story.headline(subjects[0].report)
    verdicts = [story.verdict(subject.report) for subject in subjects]
    broken = verdicts.count("breaks")
    doubts = [story.doubts(s.report) for s in subjects if story.verdict(s.report) == "unsure"]
    if doubts and not broken:
        fail = "fails" if len(doubts) == 1 else "fail"
        why = ", or ".join(dict.fromkeys(filter(None, doubts)))
        text = f"{len(doubts)} of {len(subjects)} agents {fail} more under a shift than clean"
        return f"{text}: {why}" if why else text
    if not broken:
        unmeasured = verdicts.count("unmeasured")
        beside = f"; of {unmeasured}, not every shift was measured" if unmeasured else ""
        return f"None of {len(subjects)} agents loses accuracy significantly{beside}"
    lose = "loses" if broken == 1 else "lose"
    return f"{broken} of {len(subjects)} agents {lose} accuracy when their environment changes"


def _draw(drawn: dict[str, Any], view: dict[str, Any]) -> None:
    """The charts of the page by their ids; those that have nothing to show are left out."""
    for subject in view["subjects"]:
        key = subject.key
        made: dict[str, Any] = {
            "profile": charts.profile(subject),
            "forest": charts.forest(subject)
            if any(r.defined for r in subject.report.shifts)
            else 0,
            "doses": charts.doses(subject),
            "kinds": charts.task_kinds(subject),
            "flow": flow.flow(subject),
            "refusals": charts.refusals(subject),
            "costs": charts.costs(subject),
        }
        drawn.update({f"{key}-{name}": spec for name, spec in made.items() if spec})
    if spec := versus.change_chart(view["versus"]):
        drawn["changes"] = spec
    if view["points"]:
        drawn["curves"] = versus.curve_chart(view["axis"], view["points"])


def _render(view: dict[str, Any], drawn: dict[str, Any], episodes: Fragment) -> str:
    licence = f"/*!\n{asset('LICENSES.txt')}\n*/\n"
    scripts = [
        licence + "\n".join(asset(name) for name in LIBRARIES),
        asset("page.js"),
        episodes.script,
    ]
    text: str = (
        environment()
        .get_template("page.html.j2")
        .render(
            **view,
            drawn=drawn,
            charts=safe_json(drawn),
            data=safe_json(episodes.data),
            scripts=scripts,
            css=asset("page.css") + episodes.css,
            policy=POLICY.format(scripts=" ".join(map(_hash, scripts))),
        )
    )
    return text


def environment() -> Environment:
    """The templates, in which every string is escaped."""
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals.update(
        figure=figure,
        story=story,
        first=first_screen,
        is_loss=is_loss,
        versus_=versus,
        flow=flow,
        cost_rows=_cost_rows,
        has_doses=charts.has_doses,
    )
    made.filters.update(foreign=foreign, shown=shown, words=words, seconds=seconds)
    made.filters["capitalize_first"] = lambda text: text[:1].upper() + text[1:]
    return made


def _cost_rows(each: AgentReport, at: str) -> list[tuple[Measures, str, str]]:
    return [(row, f"{at}/tiers/{place}", row.label) for place, row in enumerate(each.tiers)]


def asset(name: str) -> str:
    """A file that is put into pages as it is."""
    return read_bytes(HERE / "assets" / name).decode().replace("\r", "")


def _hash(script: str) -> str:
    return f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'"
