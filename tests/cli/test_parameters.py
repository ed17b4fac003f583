"""An option is written once: the field of the struct is its name, its type and its default."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import click
import msgspec
import pytest
from click.testing import CliRunner

from toolshift.cli.parameters import argument, option, options_of, options_struct
from toolshift.cli.parameters import given as named


class Inner(msgspec.Struct, frozen=True):
    size: int = 200
    names: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Shared:
    max_cost: Annotated[float | None, option(help="Dollars.")] = None


@dataclass(frozen=True, kw_only=True)
class Some:
    runs: Annotated[tuple[Path, ...], argument()]
    out: Annotated[Path, option(help="The file.")]
    kind: Annotated[Literal["a", "b"], option(help="Which.")] = "a"
    often: Annotated[int, option(help="How often.")] = 0
    shifts: Annotated[tuple[str, ...], option("--shift", help="Repeat.")] = ()
    loud: Annotated[bool, option(help="Loud.")] = False
    apart: Annotated[bool | None, option(help="Apart.")] = None
    full: Annotated[bool | None, option("--full/--part", help="Full.")] = None
    span: Annotated[tuple[float, float] | None, option(type=(float, float))] = None
    resume: Annotated[str | None, option(is_flag=False, flag_value="last")] = None
    inner: Annotated[
        Inner, options_of(Inner, {"size": option(help="Size."), "names": option("--name")})
    ]
    shared: Shared


SEEN: list[Some] = []


@click.command()
@options_struct(Some)
def some(options: Some) -> None:
    """Takes some."""
    SEEN.append(options)


def given(*words: str) -> Some:
    done = CliRunner().invoke(some, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return SEEN.pop()


def test_what_is_left_out_has_the_default_of_the_field() -> None:
    assert given("r", "--out", "x") == Some(
        runs=(Path("r"),), out=Path("x"), inner=Inner(), shared=Shared()
    )


def test_what_is_given_has_the_type_of_the_field() -> None:
    words = "r s --out x --kind b --often 3 --shift p --shift q --loud --apart --max-cost 2"
    found = given(*words.split(), "--size", "9", "--name", "n")
    assert found == Some(
        runs=(Path("r"), Path("s")),
        out=Path("x"),
        kind="b",
        often=3,
        shifts=("p", "q"),
        loud=True,
        apart=True,
        inner=Inner(9, ("n",)),
        shared=Shared(max_cost=2.0),
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--out", "x"), "Missing argument"),
        (("r",), "Missing option '--out'"),
        (("r", "--out", "x", "--kind", "c"), "'c' is not one of 'a', 'b'"),
        (("r", "--out", "x", "--often", "y"), "'y' is not a valid integer"),
    ],
)
def test_what_does_not_fit_is_refused(words: tuple[str, ...], said: str) -> None:
    done = CliRunner().invoke(some, words)
    assert (done.exit_code, said in done.output) == (2, True), done.output


def test_the_help_tells_defaults_that_are_something() -> None:
    said = CliRunner().invoke(some, ["--help"]).output
    for line, told in (("--kind", "[default: a]"), ("--often", "[default: 0]"),
                       ("--size", "[default: 200]")):  # fmt: skip
        assert next(told in each for each in said.splitlines() if line in each), line
    for line in ("--loud", "--shift", "--max-cost"):
        assert next("default" not in each for each in said.splitlines() if line in each), line


@pytest.mark.parametrize(("words", "full"), [((), None), (("--full",), True), (("--part",), False)])
def test_a_pair_of_flags_that_is_left_out_says_nothing(
    words: tuple[str, ...], full: bool | None
) -> None:
    assert given("r", "--out", "x", *words).full is full


def test_two_numbers_and_a_value_that_may_be_left_out() -> None:
    found = given("r", "--out", "x", "--span", "0.2", "0.8", "--resume")
    assert (found.span, found.resume) == ((0.2, 0.8), "last")
    assert given("r", "--out", "x", "--resume", "7").resume == "7"


@dataclass(frozen=True, kw_only=True)
class Narrower(Shared):
    max_cost: Annotated[float | None, option(help="Dollars a day.")] = field()


def test_a_struct_may_need_what_its_base_leaves_open() -> None:
    command = click.command()(options_struct(Narrower)(lambda options: None))
    done = CliRunner().invoke(command, [])
    assert (done.exit_code, "Missing option '--max-cost'" in done.output) == (2, True)


class Made(msgspec.Struct, frozen=True):
    max_cost: float | None = 3.0
    other: int = 1


def test_options_give_the_fields_of_their_names_where_they_are_set() -> None:
    assert Made(**named(Shared(), Made)) == Made()
    assert Made(**named(Shared(max_cost=0.0), Made)) == Made(max_cost=0.0)
    assert named(Shared(max_cost=2.0), Made, but=("max_cost",)) == {}


WRITTEN = [
    file
    for package in ("src/toolshift/cli", "lab/src/toolshift_lab/cli")
    for file in sorted((Path(__file__).parents[2] / package).glob("*.py"))
]
NOT_A_STRUCT = {
    "group.py": "the one option that stands before every command",
    "options.py": "the machine, which processes are told by the environment",
    "parameters.py": "what makes options of fields",
    "schedule.py": "an old command, which will be removed in the next minor version",
}


@pytest.mark.parametrize("file", WRITTEN, ids=lambda file: file.name)
def test_no_command_writes_its_options_beside_its_struct(file: Path) -> None:
    assert ("click.option" in file.read_text()) == (file.name in NOT_A_STRUCT)
