"""An sdist, the wheel that is built from it, and that wheel in an environment with nothing else."""

import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# Beside what the wheel asks for itself, what the page and the command line need.
WITH = ["click", "jinja2", "pandas"]

pytest.importorskip("build")
pytest.importorskip("setuptools", minversion="77")

pytestmark = pytest.mark.timeout(600)


def run(*command, **settings):
    return subprocess.run(command, capture_output=True, text=True, check=False, **settings)


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    """The folder with both, built from files as a fresh clone has them."""
    clone = tmp_path_factory.mktemp("clone")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, clone)
    leave = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "src", clone / "src", ignore=leave)
    done = run(sys.executable, "-m", "build", "--no-isolation", cwd=clone)
    assert done.returncode == 0, done.stdout + done.stderr
    return clone / "dist"


def sources():
    """What must be in both, as paths inside of the package."""
    files = [p for p in (ROOT / "src/equipoise").rglob("*") if p.is_file()]
    names = [str(p.relative_to(ROOT / "src")) for p in files if "__pycache__" not in p.parts]
    return {name.replace(os.sep, "/") for name in names}


def test_the_wheel_holds_the_package_and_nothing_else(dist):
    (wheel,) = dist.glob("*.whl")
    inside = set(zipfile.ZipFile(wheel).namelist())
    assert {name for name in inside if not name.split("/")[0].endswith(".dist-info")} == sources()
    assert any(name.endswith("licenses/LICENSE") for name in inside)


def test_the_sdist_holds_all_that_a_build_needs(dist):
    (sdist,) = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    assert {f"src/{name}" for name in sources()} <= inside
    assert {"pyproject.toml", "README.md", "LICENSE", "PKG-INFO"} <= inside


def test_the_wheel_works_where_nothing_else_is(dist, tmp_path):
    (wheel,) = dist.glob("*.whl")
    environment = tmp_path / "environment"
    assert run(sys.executable, "-m", "venv", "--without-pip", environment).returncode == 0
    folder = "Scripts" if os.name == "nt" else "bin"
    python = environment / folder / Path(sys.executable).name
    pip = [sys.executable, "-m", "pip", "--python", str(python)]
    # Compiled is only what is imported.
    quick = ["--no-compile", "--only-binary", ":all:"]
    needed = run(*pip, "install", *quick, *PROJECT["dependencies"], *WITH)
    if needed.returncode:
        pytest.skip(f"what the package needs cannot be installed: {needed.stderr.strip()[-300:]}")
    done = run(*pip, "install", "--no-index", "--no-deps", str(wheel))
    assert done.returncode == 0, done.stderr
    done = run(*pip, "check")
    assert done.returncode == 0, done.stdout
    for name in ("README.md", "tests/use_installed.py"):
        shutil.copy(ROOT / name, tmp_path)
    given = {n: v for n, v in os.environ.items() if not n.startswith("PYTHON")}
    done = run(python, "-I", "use_installed.py", "README.md", cwd=tmp_path, env=given)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "works." in done.stdout and "left out" not in done.stdout
