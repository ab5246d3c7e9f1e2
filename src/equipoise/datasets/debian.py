"""Debian's package index: descriptions of software in long-tailed classes, read where it is."""

import gzip
import lzma
import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
from sklearn.utils import Bunch

from equipoise.exceptions import InvalidInputError
from equipoise.validation.numbers import check_count, check_word

Label = Literal["section", "maintainer"]

_FIELDS = {"section": "Section", "maintainer": "Maintainer"}
_WANTED = re.compile(r"(Package|Description|Section|Maintainer): *(.*)")
_OPENERS: dict[str, Any] = {".gz": gzip.open, ".xz": lzma.open}
# LEAST_PACKAGES: of an index that stands for Debian; the packages of one machine are fewer.
LEAST_PACKAGES = 10_000
_REMEDY = (
    "on Debian or Ubuntu run 'apt-get update' first; elsewhere give the path of a Packages file "
    "(Packages, Packages.gz or Packages.xz of a Debian mirror)."
)
_DESCR = """Debian's package index, as the machine has it: one row for each package.

`data` holds the one-line descriptions; `target` the section of the archive or the maintainer, as
written in the index; `package_names` the names. Sections of contrib, non-free or Ubuntu's areas
count with those of the same name in main. Labels with fewer packages than asked for are left out.
The index changes with every release: {n} packages of {k} labels here.
"""


def load_debian_packages(
    path: str | os.PathLike[str] | None = None,
    *,
    label: Label = "section",
    min_packages: int = 5,
    return_X_y: bool = False,
) -> Any:
    """One-line descriptions of Debian's packages, in classes with a long tail.

    Debian 12 has 63,436 packages: 58 sections of 15 to 6,703 packages, and 945 maintainers with
    five packages or more.

    Parameters
    ----------
    path : path-like, optional
        A file in the format of ``Packages``, plain or with the ending ``.gz`` or ``.xz``. By
        default the index of the machine, as ``apt-cache dumpavail`` prints it.
    label : {"section", "maintainer"}, default="section"
        The classes: sections of the archive, or maintainers.
    min_packages : int, default=5
        Packages with a label that occurs less often are left out.
    return_X_y : bool, default=False
        Whether to return ``(data, target)`` only.

    Returns
    -------
    sklearn.utils.Bunch, or a pair if ``return_X_y``
        ``data`` descriptions (str, dtype object) of shape (n,); ``target`` labels of shape (n,);
        ``package_names``; ``target_names``, the most frequent first; and ``DESCR``.

    Raises
    ------
    FileNotFoundError
        If the machine has no index.

    Examples
    --------
    >>> X, y = load_debian_packages(return_X_y=True)  # doctest: +SKIP
    >>> X[0], y[0]  # doctest: +SKIP
    ('Real-time strategy game of ancient warfare', 'games')
    """
    field = _FIELDS[check_word(label, "label", tuple(_FIELDS))]
    least = check_count(min_packages, "min_packages")
    lines = _of_this_machine() if path is None else _of_file(Path(path))
    packages = {
        one["Package"]: (one["Description"], one[field])
        for one in _stanzas(lines)
        if {"Package", "Description", field} <= one.keys()
    }
    counts = Counter(package_label for _, package_label in packages.values())
    kept = {name: pair for name, pair in packages.items() if counts[pair[1]] >= least}
    if not kept:
        raise InvalidInputError(
            f"The index must hold a label with {least} packages, got {len(packages)} packages of "
            f"{len(counts)} labels; give a smaller min_packages, or another path."
        )
    data = np.array([text for text, _ in kept.values()], dtype=object)
    target = np.array([package_label for _, package_label in kept.values()])
    if return_X_y:
        return data, target
    names = [name for name, count in counts.most_common() if count >= least]
    return Bunch(
        data=data,
        target=target,
        package_names=np.array(list(kept)),
        target_names=names,
        DESCR=_DESCR.format(n=f"{len(data):,}", k=f"{len(names):,}"),
    )


def _stanzas(lines: Iterator[str]) -> Iterator[dict[str, str]]:
    """The fields of one package after another, as far as they are wanted."""
    fields: dict[str, str] = {}
    for line in lines:
        if match := _WANTED.match(line):
            name, value = match[1], match[2].strip()
            fields[name] = value.rpartition("/")[2] if name == "Section" else value
        elif not line.strip():
            yield fields
            fields = {}
    yield fields


def _of_file(path: Path) -> Iterator[str]:
    with _OPENERS.get(path.suffix, open)(path, "rt", encoding="utf-8") as file:
        yield from file


def _of_this_machine() -> Iterator[str]:
    """What apt-cache prints; an index of the installed packages alone is refused."""
    program = shutil.which("apt-cache")
    if program is None:
        raise FileNotFoundError(f"There is no package index here (no apt-cache); {_REMEDY}")
    done = subprocess.run([program, "dumpavail"], capture_output=True, check=False)
    text = done.stdout.decode("utf-8", errors="replace")
    n_stanzas = text.startswith("Package: ") + text.count("\nPackage: ")
    if n_stanzas < LEAST_PACKAGES:
        raise FileNotFoundError(
            f"The package index here holds {n_stanzas:,} packages, not {LEAST_PACKAGES:,} or more; "
            f"{_REMEDY}"
        )
    return iter(text.split("\n"))
