"""Agents, worlds and shifts are found by one mechanism, ours and those of other packages alike."""

from __future__ import annotations

import importlib
import pkgutil
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import toolshift.shifts
from toolshift.agents.catalog import KINDS, is_free, make_agent
from toolshift.agents.planted import PLANTED
from toolshift.core.errors import UsageError
from toolshift.core.registry import Registry
from toolshift.core.shift import Shift
from toolshift.data.formats import FORMATS
from toolshift.shifts.registry import SHIFTS
from toolshift.worlds.registry import WORLDS

TABLES = {"agent": KINDS, "world": WORLDS, "shift": SHIFTS}


@pytest.mark.parametrize("kind", TABLES)
def test_every_registered_string_names_something(kind: str) -> None:
    strings = sorted(set(TABLES[kind].ours.values()))
    code = (
        "import sys\nfrom functools import reduce\nfrom importlib import import_module\n"
        "for value in sys.argv[1:]:\n"
        "    module, _, path = value.partition(':')\n"
        "    reduce(getattr, path.split('.'), import_module(module))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *strings], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_tables_miss_nothing() -> None:
    for module in pkgutil.iter_modules(toolshift.shifts.__path__):
        import_module(f"toolshift.shifts.{module.name}")
    for name, shift in SHIFTS.all().items():
        assert isinstance(shift, Shift)
        assert shift.name == name
        ours = shift.rule.__module__.startswith("toolshift.") and "@" not in name
        assert not ours or name in SHIFTS.ours
    assert set(PLANTED) == {n for n, value in KINDS.ours.items() if "planted" in value}
    assert {world.name for world in WORLDS.all().values()} == set(WORLDS.names())


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed package with an entry point of each kind."""
    (tmp_path / "theirs_reg.py").write_text(
        "from toolshift.worlds.poi import WORLD\n"
        "from toolshift.core.shift import Change, shift\n"
        "@shift(tier='interaction', dimension='observation', level=1, imitates='x')\n"
        "def theirs_shift(scene, rng, severity):\n"
        "    return Change()\n"
        "def reply(messages, tools):\n"
        "    '''Says hello.'''\n"
        "    return 'hello'\n"
        "class Sized:\n"
        "    def __init__(self, size):\n"
        "        self.name = f'sized {size}'\n"
        "    def reply(self, turn):\n"
        "        return self.name\n"
        "broken = 1\n"
        "def undecorated():\n"
        "    pass\n"
    )
    (tmp_path / "theirs_broken.py").write_text("import no_such_module_anywhere\n")
    (tmp_path / "theirs_script.py").write_text("raise SystemExit(0)\n")
    folder = tmp_path / "theirs_reg-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs-reg\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(
        "[toolshift.agents]\ntheirs = theirs_reg:reply\nsized: = theirs_reg:Sized\n"
        "[broken]\nbroken = theirs_reg:missing\n"
        "[toolshift.worlds]\ntheir_world = theirs_reg:WORLD\n"
        "[toolshift.shifts]\nanything = theirs_reg\n"
        "[of_shifts]\nredirect = theirs_reg:theirs_shift\nother = theirs_reg:theirs_shift\n"
        "plain = theirs_reg:undecorated\nbroken = theirs_broken:x\nscript = theirs_script:x\n"
        "[of_worlds]\nalone = theirs_reg\n[of_formats]\nnumber = theirs_reg:broken\n"
    )
    second = tmp_path / "second_reg-2.0.dist-info"
    second.mkdir()
    (second / "METADATA").write_text("Metadata-Version: 2.1\nName: second-reg\nVersion: 2.0\n")
    (second / "entry_points.txt").write_text("[of_shifts]\nother = theirs_reg:second\n")
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_entry_points_are_found_as_our_own_names_are(package: Path) -> None:
    code = (
        "from toolshift.agents.catalog import forms, make_agent\n"
        "from toolshift.shifts.registry import find_shift, shifts\n"
        "from toolshift.worlds.registry import find_world, world_names\n"
        "print(make_agent('theirs').name, make_agent('sized:9').name, forms()['theirs'])\n"
        "print(find_shift('theirs_shift').name, 'anything' in shifts())\n"
        "print(find_world('their_world').name, 'their_world' in world_names())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=package
    )
    assert done.stdout.splitlines() == [
        "theirs sized 9 Says hello",
        "theirs_shift False",
        "poi True",
    ], done.stderr


@pytest.mark.parametrize(
    ("group", "name", "says"),
    [
        (
            "broken",
            "broken",
            r"'broken' of theirs-reg 1.0 \(theirs_reg:missing\) cannot be imported",
        ),
        ("of_shifts", "broken", r"'broken' of theirs-reg 1.0 .*No module named .*uninstall theirs"),
        (
            "of_shifts",
            "plain",
            r"'plain' of theirs-reg 1.0 .* type function, and no shift: put @sh",
        ),
        ("of_shifts", "redirect", "is registered twice, by ToolShift and by theirs-reg 1.0"),
        (
            "of_shifts",
            "other",
            "is registered twice, by .* and by .*: rename or uninstall one of the two",
        ),
        ("of_worlds", "alone", r"'alone' of theirs-reg 1.0 \(theirs_reg\) is a module: name the"),
        (
            "of_formats",
            "number",
            "is of type int, and no format: it has no name, no recognises, no",
        ),
    ],
)
def test_an_entry_point_that_names_nothing_of_use_is_said(
    package: Path, group: str, name: str, says: str
) -> None:
    wrong = FORMATS._wrong if group == "of_formats" else SHIFTS._wrong
    ours = {"redirect": "toolshift.shifts.interruption:redirect"}
    there = Registry[object]("thing", ours, group, wrong=wrong)
    with pytest.raises(UsageError, match=says):
        there.find(name)


def test_an_entry_point_has_the_name_of_its_shift(package: Path) -> None:
    (package / "second_reg-2.0.dist-info" / "entry_points.txt").unlink()
    code = (
        "from toolshift.shifts.registry import SHIFTS\n"
        "SHIFTS.group = 'of_shifts'\n"
        "SHIFTS.find('other')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=package
    )
    assert "is the shift 'theirs_shift': the entry point has to have that name" in done.stderr


def test_a_package_that_is_found_twice_counts_once(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    again = package / "again"
    about = "theirs_reg-1.0.dist-info"
    shutil.copytree(package / about, again / about)
    monkeypatch.syspath_prepend(again)
    there = Registry[object]("agent", {}, "toolshift.agents")
    assert callable(there.find("theirs"))


def test_the_nearest_names_are_offered() -> None:
    with pytest.raises(UsageError, match="unknown agent 'orcale': did you mean oracle"):
        make_agent("orcale")
    with pytest.raises(UsageError, match="unknown shift 'format_drit': did you mean format_drift"):
        SHIFTS.find("format_drit")
    with pytest.raises(UsageError, match="unknown world 'retial': did you mean retail"):
        WORLDS.find("retial")


def test_kinds_read_their_specs() -> None:
    assert make_agent("gives_up@0.5").name == "gives_up@0.5"
    assert not is_free("chat:some-model")
    assert not is_free("command:python agent.py")
    assert not is_free("url:http://127.0.0.1:9/x")
    assert is_free("oracle")
    assert is_free("smol,batch=8")
    for wrong in ("oracle@0.5", "smol@0.5", "local:", "chat:", "smol:nothing", "smol,bach=8"):
        with pytest.raises(UsageError):
            is_free(wrong)


def test_two_shifts_of_one_name_are_refused() -> None:
    from toolshift.core.shift import shift

    SHIFTS.find("placebo")

    def placebo(scene, rng, severity):
        """Another one."""

    with pytest.raises(UsageError, match="has a shift of this name already"):
        shift(tier="interaction", dimension="query", level=1, imitates="x")(placebo)


def test_a_module_that_registers_nothing_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "registers_none.py").write_text("HERE = 1\n")
    (tmp_path / "registers_one.py").write_text("import here_added\nhere_added.FOUND['one'] = 1\n")
    (tmp_path / "here_added.py").write_text("FOUND = {}\n")
    folder = tmp_path / "none_reg-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: none-reg\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(
        "[with_nothing]\nnothing = registers_none\n[with_one]\none_more = registers_one\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("registers_none", "registers_one", "here_added"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    found = importlib.import_module("here_added").FOUND
    assert Registry("thing", {}, "with_one", found, modules=True).names() == ("one",)
    says = r"'nothing' of none-reg 1.0 \(registers_none\) is a module that registers no thing"
    with pytest.raises(UsageError, match=says):
        Registry("thing", {}, "with_nothing", {}, modules=True).names()
    for name in ("registers_none", "registers_one", "here_added"):
        monkeypatch.delitem(sys.modules, name, raising=False)
