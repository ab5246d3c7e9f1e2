"""Debian's package index: the format, what is left out, and errors that say what to do."""

import gzip
import subprocess

import pytest

from equipoise.datasets import debian, load_debian_packages
from equipoise.exceptions import InvalidInputError, InvalidParameterError

TEXT = """\
Package: chess
Maintainer: Games Team <games@example.org>
Description: play against a machine
 More lines that follow are left out.
Section: games

Package: go-board
Maintainer: Games Team <games@example.org>
Description: ancient game of stones
Section: universe/games

Package: libgo
Maintainer: A/B Libraries <ab@example.org>
Description: boards of stones, shared library
Section: libs

Package: nameless
Maintainer: Games Team <games@example.org>
Section: games

Package: chess
Maintainer: Games Team <games@example.org>
Description: play against a machine, new version
Section: games
"""


@pytest.fixture
def index(tmp_path):
    path = tmp_path / "Packages"
    path.write_text(TEXT)
    return path


def test_one_row_a_package_and_areas_count_together(index):
    found = load_debian_packages(index, min_packages=1)
    assert found.package_names.tolist() == ["chess", "go-board", "libgo"]
    assert found.data[0] == "play against a machine, new version"
    assert found.target.tolist() == ["games", "games", "libs"]
    assert found.target_names == ["games", "libs"]
    assert "3 packages of 2 labels" in found.DESCR


def test_labels_of_few_packages_are_left_out(index):
    X, y = load_debian_packages(index, label="maintainer", min_packages=2, return_X_y=True)
    assert X.tolist() == ["play against a machine, new version", "ancient game of stones"]
    assert set(y) == {"Games Team <games@example.org>"}
    everything = load_debian_packages(index, label="maintainer", min_packages=1)
    assert everything.target_names[-1] == "A/B Libraries <ab@example.org>"


def test_packed_files_are_read(index, tmp_path):
    packed = tmp_path / "Packages.gz"
    packed.write_bytes(gzip.compress(index.read_bytes()))
    plain, other = (load_debian_packages(path, min_packages=1) for path in (index, packed))
    assert plain.data.tolist() == other.data.tolist()


def test_what_is_missing_is_named(index, monkeypatch):
    with pytest.raises(InvalidInputError, match=r"3 packages of 2 labels; give a smaller min"):
        load_debian_packages(index, min_packages=10)
    with pytest.raises(InvalidParameterError, match=r"label must be .*, got 'size'"):
        load_debian_packages(index, label="size")
    monkeypatch.setattr(debian.shutil, "which", lambda _: None)
    with pytest.raises(FileNotFoundError, match=r"no apt-cache.*give the path of a Packages file"):
        load_debian_packages()


def test_the_packages_of_one_machine_do_not_stand_for_debian(monkeypatch):
    monkeypatch.setattr(debian.shutil, "which", lambda _: "apt-cache")
    done = subprocess.CompletedProcess([], 0, TEXT.encode(), b"")
    monkeypatch.setattr(debian.subprocess, "run", lambda *_, **__: done)
    with pytest.raises(FileNotFoundError, match=r"holds 5 packages, not 10,000 .*apt-get update"):
        load_debian_packages()
    more = "".join(
        f"\nPackage: game-{n}\nDescription: game {n}\nSection: games\n"
        for n in range(debian.LEAST_PACKAGES)
    )
    done = subprocess.CompletedProcess([], 0, (TEXT + more).encode(), b"")
    assert len(load_debian_packages(min_packages=1).data) == 3 + debian.LEAST_PACKAGES


def test_the_index_of_this_machine():
    try:
        found = load_debian_packages(label="maintainer")
    except FileNotFoundError as error:
        pytest.skip(str(error))
    assert len(found.data) == len(found.target) == len(found.package_names) > 10_000
    assert len(found.target_names) > 100 and set(found.target) == set(found.target_names)
