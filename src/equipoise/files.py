"""Files that are either whole or not there."""

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from equipoise.exceptions import InvalidInputError

# Errors of writing alone.
_NO_ROOM = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)


@contextmanager
def atomic_write(path: str | Path) -> Iterator[BinaryIO]:
    """A binary stream whose bytes become the file when the block ends well, and never before.

    They go to another name in the same folder, are forced to the disk, and take the file's name
    in one step. If the block ends in an error, such as a full disk or an interrupt, the old file
    stays as it was, or there is none. Links are followed; devices and pipes are written
    to directly.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with atomic_write(Path(folder, "page.html")) as stream:
    ...         size = stream.write(b"whole")
    ...     Path(folder, "page.html").read_bytes()
    b'whole'
    """
    place = check_place(path)
    if place.exists() and not place.is_file():
        with place.open("wb") as stream:
            yield stream
        return
    other = place.with_name(f".equipoise-{secrets.token_hex(8)}.tmp")
    try:
        with other.open("xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        if place.exists():
            shutil.copymode(place, other)
        other.replace(place)
    except BaseException as error:
        with suppress(OSError):
            other.unlink(missing_ok=True)
        # Errors of writing speak of the file, not of its other name or of none.
        if isinstance(error, OSError) and (
            error.filename == str(other) or (error.filename is None and error.errno in _NO_ROOM)
        ):
            error.filename, error.filename2 = str(path), None
        raise


def check_place(path: str | Path, *inputs: str | Path) -> Path:
    """The path of an output file, with links followed.

    A folder, a path in a folder that does not exist, a loop of links, a read-only file and an
    input, which writing would destroy, are refused.

    Examples
    --------
    >>> check_place("page.html").name
    'page.html'
    """
    place = Path(os.path.realpath(path))
    if place.is_symlink():
        raise InvalidInputError(f"{str(path)!r} is a link to itself.")
    if place.is_dir() or str(path).endswith(("/", os.sep)):
        raise InvalidInputError(f"{str(path)!r} is a folder; give the name of a file to write.")
    if not place.parent.is_dir():
        raise InvalidInputError(f"There is no folder {place.parent} to write {place.name} into.")
    # A file is replaced in its folder, which is no reason to replace one that is read-only.
    touched = [place] if place.exists() else []
    touched += [place.parent] if place.is_file() or not touched else []
    for each in touched:
        if not os.access(each, os.W_OK):
            raise InvalidInputError(
                f"{str(path)!r} cannot be written, because {each} is read-only: change its "
                "permissions, or write to another place."
            )
    for input_path in inputs:
        if place.exists() and Path(input_path).exists() and place.samefile(input_path):
            raise InvalidInputError(f"{path} is an input: writing would destroy it.")
    return place
