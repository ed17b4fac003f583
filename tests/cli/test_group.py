"""The table of commands: lazy and true; one struct of options a command; help under headings."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import get_type_hints

import click
import pytest
from click.testing import CliRunner
from running import Run

from toolshift.cli import group
from toolshift.cli.group import LAB, Entry, toolshift
from toolshift.cli.parameters import options_struct
from toolshift.cli.sectioned import HEADINGS, HELP_ALL, Sectioned
from toolshift.core.installation import extra
from toolshift.core.registry import Registry
from toolshift.runs.suite import Selection

NAMES = toolshift.list_commands(click.Context(toolshift))


def found(name: str) -> click.Command:
    command = toolshift.get_command(click.Context(toolshift), name)
    assert command is not None
    return command


def long_commands() -> dict[str, click.Command]:
    train = found("train")
    assert isinstance(train, click.Group)
    return {
        **{name: found(name) for name in NAMES if isinstance(found(name), Sectioned)},
        **train.commands,
    }


def whole_help(command: click.Command) -> str:
    """What --help-all prints."""
    done = CliRunner().invoke(command, [HELP_ALL])
    assert done.exit_code == 0
    return done.output


@pytest.mark.parametrize("name", NAMES)
def test_each_line_of_the_table_is_a_command_of_that_name(name: str) -> None:
    assert found(name).name == name


def test_the_help_imports_no_command() -> None:
    code = (
        "import sys; sys.argv = ['toolshift', '--help']\n"
        "from toolshift.cli import main\n"
        "try: main()\n"
        "finally: print([m for m in sys.modules if m.startswith('toolshift.') and m.count('.') > 1"
        " and not m.startswith('toolshift.core')], 'numpy' in sys.modules, file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stderr.strip() == "['toolshift.cli.group', 'toolshift.cli.stopping'] False"
    assert all(name in ran.stdout for name in NAMES)


def test_a_command_without_its_packages_says_which_extra_to_install(
    monkeypatch: pytest.MonkeyPatch, toolshift: Run
) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] in ("mcp", "uvicorn")]:
        monkeypatch.delitem(sys.modules, name)
    for name in [name for name in sys.modules if name.startswith("toolshift.c")]:
        if name.startswith(("toolshift.connect", "toolshift.cli.serve", "toolshift.cli.proxy")):
            monkeypatch.delitem(sys.modules, name)
    for name in ("mcp", "uvicorn"):
        monkeypatch.setitem(sys.modules, name, None)
    for words in (("serve",), ("proxy", "--", "x"), ("model-proxy", "--upstream", "http://x/v1")):
        code, _, err = toolshift(*words)
        assert code == 2
        assert extra("connect") in err


def test_a_fault_in_a_module_of_ours_is_not_taken_for_a_missing_package(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broken = {"Measure": {"run": Entry("toolshift.cli.nowhere:run", "Runs.", "connect")}}
    monkeypatch.setattr("toolshift.cli.group.SECTIONS", broken)
    with pytest.raises(ModuleNotFoundError, match="nowhere"):
        found("run")


def test_long_help_stands_under_headings_and_leaves_nothing_out() -> None:
    for name, command in long_commands().items():
        assert isinstance(command, Sectioned), name
        context = click.Context(command, info_name=name, help_option_names=["-h", "--help"])
        short = command.get_help(context)
        offered = [line.split()[0] for line in short.splitlines() if line.startswith("  --")]
        assert 1 < len(offered) <= 9, name
        assert offered[-1] == "--help-all"
        assert "-h, --help" in short
        shown = whole_help(command).splitlines()
        titles = [line.rstrip(":") for line in shown if line.endswith(":") and line[0] != " "]
        assert [title for title in (*HEADINGS, "Advanced") if title in titles] == titles
        assert not any(line.strip() == "[RUN]" for line in shown)
        for param in command.params:
            if isinstance(param, click.Option):
                option = max(param.opts, key=len)
                assert sum(line.lstrip().startswith(option) for line in shown) >= 1, option


def test_every_name_under_a_heading_is_an_option() -> None:
    known = {param.name for command in long_commands().values() for param in command.params}
    assert {name for names in HEADINGS.values() for name in names} <= known


@dataclass(frozen=True, kw_only=True)
class Some:
    selection: Selection
    loud: bool


def test_a_command_gets_one_struct_of_its_options() -> None:
    seen: list[Some] = []
    taken = options_struct(Some)(seen.append)
    given = {name: getattr(Selection(tasks=3), name) for name in Selection.__struct_fields__}
    taken(loud=True, **given)
    assert seen == [Some(selection=Selection(tasks=3), loud=True)]
    with pytest.raises(AssertionError, match="no field for loudly"):
        taken(loud=True, loudly=True, **given)


def leaves(command: click.Command) -> Iterator[click.Command]:
    """A command, or those of a group."""
    if not isinstance(command, click.Group):
        yield command
        return
    for name in command.list_commands(click.Context(command)):
        each = command.get_command(click.Context(command), name)
        assert each is not None
        yield from leaves(each)


@pytest.mark.parametrize("name", NAMES)
def test_the_struct_of_a_command_has_a_field_for_each_option(name: str) -> None:
    for command in leaves(found(name)):
        action = getattr(command.callback, "__wrapped__", None)
        if action is None:
            assert len(command.params) == 1  # such as `artifacts get PATH`
            continue
        (kind,) = [hint for key, hint in get_type_hints(action).items() if key != "return"]
        seen: list[object] = []
        given = [param for param in command.params if param.expose_value]
        options_struct(kind)(seen.append)(**{str(param.name): None for param in given})
        assert isinstance(seen[0], kind)


def test_an_unknown_command_is_answered_with_the_nearest(toolshift: Run) -> None:
    for words, near in (
        (("rum",), "run"),
        (("world", "recod"), "record"),
        (("train", "stf"), "sft"),
    ):
        code, _, err = toolshift(*words)
        assert code == 2
        assert f"did you mean {near}" in err


def test_a_command_of_the_lab_says_where_it_is(
    monkeypatch: pytest.MonkeyPatch, toolshift: Run
) -> None:
    none: Registry[Entry] = Registry("command", {}, "toolshift.no_such_group")
    monkeypatch.setattr("toolshift.cli.group.COMMANDS", none)
    for name in LAB:
        code, _, err = toolshift(name)
        assert code == 2
        assert f"toolshift {name} is not installed" in err
        assert "pip install ./lab" in err


COMMANDS_OF_ANOTHER = """
import click
import toolshift
from toolshift.cli.group import Entry

@click.command()
@click.argument("words", nargs=-1)
def count(words):
    "Say how many words there are."
    if not words:
        raise toolshift.UsageError("no words: say one")
    print(len(words))

def plain():
    pass

slow = Entry("theirs_cli:count", "Say it later.")
lost = Entry("theirs_cli:cuont", "Say nothing.")
lost_too = Entry("no_such_module_cli:count", "Say nothing.")
"""

WRONG = {
    "plain": ("theirs_cli:plain", "is of type function, not a click command: put @click.comm"),
    "gone": ("theirs_cli:gone", "has no attribute 'gone'"),
    "unmade": ("no_such_module_cli:x", "No module named 'no_such_module_cli'"),
    "alone": ("theirs_cli", "is a module: name the command in it, MODULE:NAME"),
}
LOST = ("lost", "lost_too")


@pytest.fixture
def another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package with commands."""
    (tmp_path / "theirs_cli.py").write_text(COMMANDS_OF_ANOTHER)
    about = tmp_path / "theirs_cli-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs-cli\nVersion: 1.0\n")
    places = {name: f"theirs_cli:{name}" for name in ("count", "slow", *LOST)}
    places |= {name: place for name, (place, _) in WRONG.items()} | {"run": "theirs_cli:count"}
    lines = [f"{name} = {place}" for name, place in places.items()]
    (about / "entry_points.txt").write_text("\n".join(["[of_commands]", *lines]) + "\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "theirs_cli", raising=False)
    there = Registry[click.Command | Entry](
        "command", {}, "of_commands", wrong=group.COMMANDS._wrong
    )
    monkeypatch.setattr(group, "COMMANDS", there)


def test_a_command_of_another_package_is_run(another: None, toolshift: Run) -> None:
    for name in ("count", "slow"):
        assert toolshift(name, "a", "b")[:2] == (0, "2\n")
        code, _, err = toolshift(name)
        assert (code, err) == (2, "Error: no words: say one\n")


@pytest.mark.parametrize("name", [*WRONG, *LOST])
def test_what_is_no_command_is_one_sentence(another: None, toolshift: Run, name: str) -> None:
    code, _, err = toolshift(name)
    assert code == 2
    assert err.startswith(f"Error: command '{name}' of theirs-cli 1.0 (")
    says = WRONG[name][1] if name in WRONG else "cannot be imported: "
    assert says in err
    assert err.count("\n") == 1


def test_the_help_says_what_is_wrong_and_stays(another: None, toolshift: Run) -> None:
    code, out, _ = toolshift("--help")
    assert code == 0
    said = " ".join(out.split())
    assert "count Say how many words there are." in said
    assert "slow Say it later." in said
    for name, (place, _) in WRONG.items():
        assert f"{name} Error: command '{name}' of theirs-cli 1.0 ({place})" in said
    assert "run The command of theirs-cli 1.0 is not used, because ToolShift has one" in said
