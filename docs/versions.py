"""The versions that the site can switch between: the newest at its root, older ones in folders.

All versions read the list of the newest, ``_static/switcher.json``. ``SITE`` is the address of the
root, ``https://example.org/equipoise/``; without it the site is served at the root of this machine.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

SITE = os.environ.get("SITE", "")
LIST = f"{SITE}_static/switcher.json"


def versions(changelog: str) -> list[dict[str, str | bool]]:
    """Versions of the changelog, the newest first, as the theme's switcher reads them."""
    headings = re.findall(r"^## ((\d+\.\d+\.\d+)\b.*)$", changelog, re.MULTILINE)
    root = SITE or "/"
    return [
        {
            "name": heading,
            "version": number,
            "url": f"{root}{number}/" if at else root,
            "preferred": not at,
        }
        for at, (heading, number) in enumerate(headings)
    ]


def write(changelog: Path, target: Path) -> None:
    """Write the list of versions."""
    listed = versions(changelog.read_text(encoding="utf-8"))
    target.write_text(json.dumps(listed, indent=1), encoding="utf-8")
