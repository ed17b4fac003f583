"""What is built: the wheel, made from the source distribution, does its work without the lab.

The wheel is installed in an environment of its own, beside the packages of this one but for
ToolShift and its lab.
"""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OURS = re.compile(r"_*(editable|toolshift|distutils-precedence)", re.IGNORECASE)
TEST = """
import pytest


@pytest.mark.toolshift(agent="oracle", shifts=["redirect:2"], tasks=1, worlds=["poi"])
def test_it(shift_result):
    shift_result.assert_accuracy(0.5)
"""
Command = Callable[..., "subprocess.CompletedProcess[str]"]

pytestmark = pytest.mark.slow
pytest.importorskip("hatchling", reason="the build backend is in the extra dev")


def built(folder: Path, target: str, out: Path) -> Path:
    """What the build backend makes of a folder."""
    words = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(out)]
    subprocess.run(words, cwd=folder, check=True, capture_output=True)
    [made] = out.iterdir()
    return made


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution."""
    return built(ROOT, "sdist", tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the source distribution."""
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as file:
        file.extractall(folder, filter="data")
    [source] = folder.iterdir()
    return built(source, "wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of an environment with the wheel."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=True)
    others = folder / "others"
    others.mkdir()
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if not OURS.match(path.name):
            (others / path.name).symlink_to(path)
    [packages] = folder.glob("lib/python*/site-packages")
    (packages / "others.pth").write_text(f"{others}\n")
    python = folder / "bin" / "python"
    pip = [python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel]
    subprocess.run(pip, check=True, capture_output=True, env={"PYTHONPATH": str(others)})
    return folder / "bin"


@pytest.fixture
def toolshift(installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The program of the environment, in an empty folder."""
    monkeypatch.delenv("PYTHONPATH", raising=False)

    def run(*words: str, program: str = "toolshift") -> subprocess.CompletedProcess[str]:
        command = [str(installed / program), *words]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    return run


def test_studies_and_lab_do_not_travel(sdist: Path, wheel: Path) -> None:
    with tarfile.open(sdist) as file:
        names = {name.split("/")[1] for name in file.getnames()}
    assert {"src", "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md"} <= names
    assert not names & {"studies", "lab", "benchmarks", "tests", "changes", "runs", "build"}
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.split("/")[0] for name in archive.namelist()}
    assert {top.partition("-")[0] for top in tops} == {"toolshift"}


def test_the_environment_has_the_wheel_alone(toolshift: Command) -> None:
    code = (
        "import importlib.util, toolshift\n"
        "print(toolshift.__file__, importlib.util.find_spec('toolshift_lab'))"
    )
    done = toolshift("-c", code, program="python")
    assert "environment" in done.stdout, done.stderr
    assert done.stdout.endswith("None\n")
    listed = toolshift("--help").stdout
    assert "model-proxy" in listed
    assert "reproduce" not in listed


def test_agents_are_run_and_reported(toolshift: Command, tmp_path: Path) -> None:
    agents = ("--agent", "oracle", "--agent", "memorises_names")
    done = toolshift("run", *agents, "--world", "poi", "--tasks", "1", "--out", "first")
    assert done.returncode == 0, done.stderr
    assert toolshift("report", "first").returncode == 0
    assert (tmp_path / "first" / "report.html").exists()
    assert toolshift("trace", "first").returncode == 0


def test_the_pytest_plugin_is_found(toolshift: Command, tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(TEST)
    done = toolshift("-m", "pytest", "-q", "--strict-markers", program="python")
    assert "3 passed" in done.stdout, done.stdout + done.stderr


def test_inspect_finds_the_tasks(toolshift: Command) -> None:
    code = (
        "from importlib.metadata import entry_points\n"
        "[entry] = entry_points(group='inspect_ai', name='toolshift')\nprint(entry.value)\n"
        "import importlib.util\nif importlib.util.find_spec('inspect_ai'): entry.load()"
    )
    done = toolshift("-c", code, program="python")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "toolshift.connect.inspect.registry\n"


@pytest.mark.model
def test_the_commands_of_the_demo_work(toolshift: Command) -> None:
    [text] = re.findall(
        r"^DEMO := (.*?)\n\n", (ROOT / "Makefile").read_text(), re.MULTILINE | re.DOTALL
    )
    options = text.replace("\\\n", " ").replace("--tasks 9", "--tasks 1").split()
    agents = ("--agent", "smol:static", "--agent", "smol:paft", "--agent", "memorises_names")
    done = toolshift("run", *agents, *options, "--only-distinguishable", "--out", "demo")
    assert done.returncode == 0, done.stderr
    assert "Page: " in toolshift("report", "demo", "--only-distinguishable").stdout


@pytest.mark.parametrize(
    "command",
    [
        "reproduce decisive",
        "artifacts",
        "run --agent oracle --shift semantic_rename@1",
        "run --agent oracle --suite quick@1",
        "data --shift semantic_rename@1 --count 1 --alpha 1 --out rows.jsonl",
    ],
)
def test_what_is_in_the_lab_is_said_to_be_there(toolshift: Command, command: str) -> None:
    done = toolshift(*command.split())
    assert done.returncode == 2, done.stdout
    assert "pip install ./lab" in done.stderr
    assert "Traceback" not in done.stderr
