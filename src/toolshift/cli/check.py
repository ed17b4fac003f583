"""`toolshift check`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Annotated

import click

from toolshift.cli.options import AsJson
from toolshift.cli.parameters import PATH, argument, on_command_line, option, options_struct
from toolshift.core.errors import UsageError
from toolshift.core.names import MAX_NAME, is_taken_by_all
from toolshift.core.terminal import print_json, print_table, progress, say
from toolshift.core.tool import Param
from toolshift.interop.parts import kinds_of
from toolshift.runs.check import (
    RULES,
    Verdict,
    bench_of,
    check_determinism,
    check_shift,
    check_world,
    worlds_of,
)
from toolshift.runs.own_checking import Tried, check_tasks
from toolshift.shifts.registry import shifts
from toolshift.worlds.names import is_file
from toolshift.worlds.own import load
from toolshift.worlds.own.world import OwnWorld


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """What `toolshift check` is asked for.

    Attributes:
        names: worlds and shifts; all of ours where there are none.
        tasks: of each world; 0 tries two of each kind.
    """

    names: Annotated[tuple[str, ...], argument()] = ()
    tasks: Annotated[
        int, option(help="Tasks of each world (default: two of each kind).", show_default=False)
    ] = 0
    seed: Annotated[int, option(help="Seed of the worlds.")] = 0
    rules: Annotated[
        bool,
        option(
            "--rules/--no-rules",
            help="For a file of tasks: check the rules too, which runs more episodes.",
        ),
    ] = True
    as_json: AsJson = False


@click.command()
@options_struct(CheckOptions)
def check(options: CheckOptions) -> None:
    """Check that worlds and shifts keep the rules that valid measurements need.

    NAMES are worlds, shifts, or a plugin as module:attribute (default: everything built in). For a
    file of your own tasks, each task is first tried on its tools and under every shift. If you name
    such a file together with a shift, the shift is checked on that world.

    \b
    toolshift check envelope
    toolshift check tasks.yaml

    Exit code 1 if a rule is broken, or a task does not pass.
    """
    if not options.names or not all(map(is_file, options.names)):
        if on_command_line("rules"):
            raise UsageError(
                "--no-rules works only with files of tasks: name no worlds or shifts, or leave "
                "it out"
            )
        verdicts = _verdicts(options)
        _print(verdicts, options.as_json)
        if _broken(verdicts):
            sys.exit(1)
        return
    tried = _try_files(options)
    verdicts = _verdicts(options) if options.rules else []
    if options.as_json:
        print_json({"tasks": tried, "rules": verdicts} if options.rules else tried)
    elif options.rules:
        _print(verdicts, False)
    if _broken(verdicts) or any(task.state == "fail" for task in tried):
        sys.exit(1)


def _broken(verdicts: list[Verdict]) -> bool:
    return any(verdict.state == "fail" for verdict in verdicts)


def _try_files(options: CheckOptions) -> list[Tried]:
    """Tries every task of some files."""
    all_tried: list[Tried] = []
    for name in options.names:
        with progress("tasks") as watch:
            world = load(PATH.convert(name, None, None))
            tried = check_tasks(world, watch)
        all_tried += tried
        if not options.as_json:
            _print_tried(world, tried)
    return all_tried


def _print_tried(world: OwnWorld, tried: list[Tried]) -> None:
    """Prints what was found of the tasks of a file."""
    rows = [[t.id, t.state, t.shifts, t.answer_type, t.said] for t in tried]
    print_table("", ("task", "", "shifts", "answer", ""), rows)
    say(
        f"\nshifts: of all {len(shifts())} shifts, those under which the expected calls solve "
        "the task, tried one by one; the others do not apply to it (--json says why). answer: "
        "the type that is used to compare it."
    )
    if any(task.answer_type.endswith("?") for task in tried):
        say(
            "\nNote: an answer type with `?` is inferred and not used: these answers are read by "
            "the rule for English. `check: {answer: ..., as: TYPE}` compares them by their type."
        )
    if any(task.answer_type.startswith("yes_no") for task in tried):
        say(
            "\nNote: for yes or no, an answer must use that word or the words of the request. "
            'Other words do not pass ("still open", if the request says "paid"). If a result has '
            "a text for it, let the request ask for that text."
        )
    if world.shared:
        say(f"\nNote: {world.shared}.")
    if not world.writes and world.file.writes is None:
        say(
            "\nNote: no tool is known to change anything, so no write is counted as surplus. "
            "List the tools that change something under `writes:`."
        )
    for text in _left_out_texts(world)[:3]:
        say(f"\nNote: {text}")
    odd = [tool.name for tool in world.tools if not is_taken_by_all(tool.name)]
    if odd:
        say(
            f"\nNote: {', '.join(map(repr, odd[:3]))}{', ...' if odd[3:] else ''}: not all model "
            f"providers accept such a tool name; all accept up to {MAX_NAME} letters, digits, _ "
            "and -."
        )
    broken = sum(task.state == "fail" for task in tried)
    say(f"\n{world.name}: {len(tried)} tasks, {len(world.tools)} tools, {broken} broken")


def _left_out_texts(world: OwnWorld) -> list[str]:
    """The optional texts, such as a reason, that an expected call of a write leaves out.

    An agent that fills one in has made another call, for a text can change what is written.
    """
    params = {tool.name: tool.params for tool in world.tools}
    left: dict[tuple[str, str], list[str]] = {}
    for given in world.file.given:
        for call in given.calls:
            for param in params[call.name] if call.name in world.writes else ():
                if not param.required and param.name not in call.arguments and _is_text(param):
                    left.setdefault((call.name, param.name), []).append(given.id)
    return [
        f"{tool} takes an optional text `{name}`, and the expected call of "
        f"{', '.join(dict.fromkeys(ids))} leaves it out: a call with such a text fails the task. "
        f"If any text is right, write `{name}: {{any: EXAMPLE}}`."
        for (tool, name), ids in left.items()
    ]


def _is_text(param: Param) -> bool:
    """Whether a parameter takes any text."""
    closed = {"enum", "const", "format", "pattern"} & param.schema.keys()
    return kinds_of(param.schema) == {"string"} and not closed


def _verdicts(options: CheckOptions) -> list[Verdict]:
    """Checks worlds and shifts against the rules."""
    names = options.names
    bench = bench_of(names, options.tasks, options.seed)
    only_shifts = bool(names) and not worlds_of(names)
    worlds = () if only_shifts else bench.worlds
    verdicts: list[Verdict] = []
    total = len(worlds) + len(bench.shifts) + 1
    with progress("checks") as watch:
        for done, world in enumerate(worlds):
            watch(done, total)
            verdicts += check_world(bench, world)
        for done, name in enumerate(bench.shifts, len(worlds)):
            watch(done, total)
            verdicts += check_shift(bench, name)
        watch(total - 1, total)
        verdicts.append(check_determinism(names, bench))
    return verdicts


def _print(verdicts: list[Verdict], as_json: bool) -> None:
    if as_json:
        print_json(verdicts)
        return
    bad = [verdict for verdict in verdicts if verdict.state != "pass"]
    if bad:
        rows = [[v.subject, v.rule, v.state, v.detail] for v in bad]
        print_table("", ("checked", "rule", "result", "what is wrong"), rows)
        broken = sorted({verdict.rule for verdict in bad})
        say("\nThe rules:\n" + "".join(f"  {rule}  {RULES[rule]}\n" for rule in broken))
    count = {state: sum(v.state == state for v in verdicts) for state in ("pass", "fail")}
    say(
        f"{len(verdicts)} checks: {count['pass']} passed, {count['fail']} failed, "
        f"{len(bad) - count['fail']} not tested"
    )
