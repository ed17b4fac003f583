"""Worlds and shifts of the user's own, by `module:OBJECT` and by `--plugin`, and their runs."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from pages import code_of
from running import Run, runner

from toolshift.core.command_line import PLUGINS

RUN = ("run", "--agent", "memorises_names", "--tasks", "2", "--no-placebo")


def toolshift(folder: Path, *words: str) -> tuple[int, str, str]:
    """The command line in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "toolshift", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def run_here(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Run:
    """The command line in this process, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return runner(capsys, monkeypatch)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the world and the shift of the docs, and a run of both."""
    folder = tmp_path_factory.mktemp("here")
    (folder / "library.py").write_text(code_of("add-a-world.md"))
    (folder / "envelope.py").write_text(code_of("add-a-shift.md"))
    words = ("--world", "library:WORLD", "--shift", "identity_erasure", "--shift", "envelope")
    code, _, err = toolshift(
        folder, "--plugin", "envelope.py", *RUN, *words, "--workers", "2", "--out", "r"
    )
    assert code == 0, err
    return folder


def test_a_run_knows_its_plugins(here: Path) -> None:
    manifest = json.loads((here / "r" / "manifest.json").read_text())
    assert manifest["plugins"] == ["envelope.py", "library"]
    assert manifest["selection"]["worlds"] == ["library"]


def test_to_look_at_a_run_its_plugins_need_not_be_loaded(here: Path) -> None:
    code, out, err = toolshift(here, "trace", "r")
    assert code == 0, err
    assert "6 episodes" in out


def test_a_run_whose_plugins_are_not_loaded_says_the_command_that_loads_them(here: Path) -> None:
    code, _, err = toolshift(here, "replay", "r", "--sample", "100")
    assert code == 2
    assert "the shift 'envelope', world 'library' of the plugin envelope.py, library" in err
    said = err.strip().rpartition("Name it: ")[2]
    assert said == "toolshift --plugin envelope.py --plugin library replay r --sample 100"
    code, out, err = toolshift(here, *shlex.split(said)[1:])
    assert code == 0, err
    assert "all verdicts are confirmed" in out


def test_the_command_that_shows_an_episode_can_be_pasted(here: Path) -> None:
    named = ("--plugin", "envelope.py", "--plugin", "library")
    _, out, _ = toolshift(here, *named, "report", "r", "--no-html", "--details")
    said = out[out.index("Most frequent cause") :].partition("toolshift")[2].splitlines()[0]
    words = ["toolshift", *shlex.split(said)]
    assert words[:2] == ["toolshift", "--plugin"]
    assert words[-3:-1] == ["trace", "r"]
    code, out, err = toolshift(here, *words[1:])
    assert code == 0, err
    assert "Here it goes wrong" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--plugin", "envelop.py", "list"), "there is no such file: did you mean envelope.py?"),
        (("--plugin", "library:WORLD", "list"), "name a file or a module"),
        (("check", "library"), "written as library:NAME"),
        ((*RUN, "--world", "library.py:WORLD"), "name its module, as in library:WORLD"),
        ((*RUN, "--world", "library:WORLDS"), "did you mean library:WORLD?"),
        ((*RUN, "--world", "library:draw"), "is a function, not a toolshift.World"),
    ],
)
def test_what_is_named_wrongly_is_said(
    here: Path, run_here: Run, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], said: str
) -> None:
    monkeypatch.setenv(PLUGINS, "")
    monkeypatch.chdir(here)
    monkeypatch.syspath_prepend(str(here))
    try:
        code, _, err = run_here(*words)
    finally:
        sys.modules.pop("library", None)
    assert (code, len(err.strip().splitlines())) == (2, 1), err
    assert said in err


@pytest.mark.parametrize(
    ("ends", "said"),
    [("sys.exit(0)", "SystemExit: 0"), ("raise BaseException('odd')", "BaseException: odd")],
    ids=["exits", "raises"],
)
@pytest.mark.parametrize(
    "words",
    [
        ("--plugin", "script.py", "list", "shifts"),
        ("--plugin", "script", "list", "shifts"),
        ("run", "--agent", "script:agent", "--tasks", "1"),
        ("check", "script:exiting"),
    ],
    ids=["file", "module", "agent", "check"],
)
def test_a_script_that_ends_the_program_is_an_error_and_no_success(
    words: tuple[str, ...], ends: str, said: str, run_here: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PLUGINS, "")
    Path("script.py").write_text(f"import sys\n\n{ends}\n")
    try:
        code, _, err = run_here(*words)
    finally:
        sys.modules.pop("script", None)
    assert (code, said in err) == (2, True), err


def test_a_shift_that_ends_the_program_is_an_error_and_no_success(tmp_path: Path) -> None:
    text = code_of("add-a-shift.md")
    (tmp_path / "envelope.py").write_text(
        re.sub(r"    return Change", "    exit(0)", text, count=1)
    )
    words = ("run", "--agent", "oracle", "--tasks", "1", "--shift", "envelope")
    code, _, err = toolshift(tmp_path, "--plugin", "envelope.py", *words)
    assert (code, "ended the program with exit code 0 (envelope.py, line" in err) == (2, True), err


def test_a_folder_is_no_plugin(run_here: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PLUGINS, "")
    Path("folder.py").mkdir()
    code, _, err = run_here("--plugin", "folder.py", "list", "shifts")
    assert (code, "this is a folder" in err) == (2, True), err


def test_a_plugin_behind_the_command_is_answered_with_its_place() -> None:
    words = [sys.executable, "-m", "toolshift", "list", "shifts", "--plugin", "mine.py"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--plugin must come before the command: toolshift --plugin FILE.py" in done.stderr


@pytest.mark.parametrize("words", [("check", "bare"), ("show", "poi/listing", "--shift", "bare")])
def test_a_function_that_is_no_shift_yet_is_said(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "plain_one.py").write_text("\n\ndef bare(scene, rng, severity):\n    return None\n")
    code, _, err = toolshift(tmp_path, "--plugin", "plain_one.py", *words)
    assert code == 2
    assert err == (
        "Error: plugin plain_one.py: bare is a function (plain_one.py, line 3) and no shift: put "
        "@shift(tier=..., dimension=...) over it\n"
    )


@pytest.mark.parametrize(
    "words",
    [
        ("check", "gone"),
        ("run", "--agent", "oracle", "--tasks", "1", "--shift", "gone"),
        ("show", "poi/listing", "--shift", "gone"),
    ],
    ids=lambda words: words[0],
)
def test_an_error_in_a_plugin_is_the_one_that_is_said(
    words: tuple[str, ...], run_here: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PLUGINS, "")
    Path("half_made.py").write_text("import no_such_module_at_all\n")
    code, _, err = run_here("--plugin", "half_made.py", *words)
    assert code == 2
    assert "half_made.py cannot be imported: ModuleNotFoundError: No module named" in err
    assert "(half_made.py, line 1)" in err
    assert "half_made" not in sys.modules


WORTHLESS = {
    "empty": "",
    "comments": "# a shift is to come\n",
    "helpers": "import json\n\ndef half(number):\n    return number / 2\n",
    "agent": "def reply(messages, tools):\n    return 'hello'\n",
    "decorated too late": "if False:\n    from toolshift import shift\n",
}


@pytest.mark.parametrize("text", WORTHLESS.values(), ids=WORTHLESS)
@pytest.mark.parametrize("words", [("list", "shifts"), ("list", "worlds")])
def test_a_plugin_that_brings_nothing_is_said(
    tmp_path: Path, text: str, words: tuple[str, ...]
) -> None:
    (tmp_path / "bare_one.py").write_text(text)
    code, _, err = toolshift(tmp_path, "--plugin", "bare_one.py", *words)
    assert code == 2
    assert err.startswith("Error: plugin bare_one.py: it has no shift and no world.")
