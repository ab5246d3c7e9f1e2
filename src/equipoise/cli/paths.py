"""Checks of where results go, before any work is done."""

from pathlib import Path

from equipoise.exceptions import InvalidInputError


def check_output(out: str, *inputs: str) -> None:
    """Refuse a folder, a place that is not there, and any of the inputs."""
    place = Path(out)
    if place.is_dir():
        raise InvalidInputError(f"{out!r} is a folder; give the name of a file to write.")
    if not place.resolve().parent.is_dir():
        raise InvalidInputError(f"There is no folder {place.parent} to write {place.name} into.")
    for given in inputs:
        if place.exists() and Path(given).exists() and place.samefile(given):
            raise InvalidInputError(f"{out} is an input: writing would destroy it.")
