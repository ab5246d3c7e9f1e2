"""Files are whole or not there."""

import errno
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from equipoise.exceptions import InvalidInputError
from equipoise.files import atomic_write


def listing(folder):
    return [path.name for path in folder.iterdir()]


def interrupted(path, error):
    with atomic_write(path) as stream:
        stream.write(b"half")
        raise error


def test_a_block_that_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    for error in (ValueError, KeyboardInterrupt, SystemExit):
        with pytest.raises(error):
            interrupted(path, error)
    assert path.read_bytes() == b"old" and listing(tmp_path) == ["file"]


def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left") as found, atomic_write(path) as stream:
        stream.write(b"new")
    assert found.value.filename == str(path)
    assert path.read_bytes() == b"old" and listing(tmp_path) == ["file"]


def test_a_limit_on_the_size_of_files_leaves_nothing(tmp_path):
    pytest.importorskip("resource")
    code = textwrap.dedent("""
        import resource, sys
        from equipoise.files import atomic_write
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        try:
            with atomic_write(sys.argv[1]) as stream:
                stream.write(b"x" * 100_000)
        except OSError as error:
            print(error.strerror)
    """)
    path = tmp_path / "file"
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    assert "too large" in done.stdout and listing(tmp_path) == []


def test_the_old_file_is_there_until_the_new_one_is_whole(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with atomic_write(path) as stream:
        stream.write(b"new")
        stream.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new" and listing(tmp_path) == ["file"]


def test_links_permissions_and_devices_stay_what_they_are(tmp_path):
    path, link = tmp_path / "file", tmp_path / "link"
    path.write_bytes(b"old")
    path.chmod(0o640)
    link.symlink_to(path)
    with atomic_write(link) as stream:
        stream.write(b"new")
    assert link.is_symlink() and path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o640
    if Path("/dev/full").exists():
        with pytest.raises(OSError, match="No space left"), atomic_write("/dev/full") as stream:
            stream.write(b"x")
        assert not Path("/dev/full").is_file()


def test_places_that_cannot_be_written_to_are_said(tmp_path):
    with pytest.raises(InvalidInputError, match="is a folder"), atomic_write(tmp_path):
        pass
    with (
        pytest.raises(InvalidInputError, match="There is no folder"),
        atomic_write(tmp_path / "no" / "file"),
    ):
        pass
