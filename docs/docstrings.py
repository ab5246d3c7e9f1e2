"""Names as the reference shows them: examples with imports, own members, pages of the guide."""

from __future__ import annotations

import ast
import builtins
import doctest
import re
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import equipoise

# ELSEWHERE: imports of other packages that examples use by a short name.
ELSEWHERE = {"np": "import numpy as np", "torch": "import torch"}


def homes() -> dict[str, str]:
    """The module under which the reference lists each public name: the top, or its subpackage."""
    packages = [module.name for module in iter_modules(equipoise.__path__) if module.ispkg]
    modules = {
        name: f"equipoise.{package}"
        for package in packages
        for name in getattr(import_module(f"equipoise.{package}"), "__all__", ())
    }
    return modules | dict.fromkeys(equipoise._HOME, "equipoise")


def missing_names(example: str) -> set[str]:
    """Names that an example uses without defining or importing them."""
    used, known = set(), set(dir(builtins))
    for node in ast.walk(ast.parse(example)):
        match node:
            case ast.Import() | ast.ImportFrom():
                known |= {each.asname or each.name.partition(".")[0] for each in node.names}
            case ast.FunctionDef() | ast.ClassDef():
                known.add(node.name)
            case ast.arg():
                known.add(node.arg)
            case ast.Name(ctx=ast.Load()):
                used.add(node.id)
            case ast.Name():
                known.add(node.id)
    return used - known


def imports_for(docstring: str, places: dict[str, str]) -> list[str]:
    """The imports that a reader needs to run the examples of a docstring."""
    parts = doctest.DocTestParser().get_examples(docstring)
    missing = sorted(missing_names("".join(part.source for part in parts)))
    ours: dict[str, list[str]] = {}
    for name in missing:
        if name in places:
            ours.setdefault(places[name], []).append(name)
    lines = [ELSEWHERE[name] for name in missing if name in ELSEWHERE]
    return lines + [f"from {home} import {', '.join(names)}" for home, names in ours.items()]


def complete_examples(places: dict[str, str], lines: list[str]) -> None:
    """Put these imports before the first line of the examples, in place."""
    first = next((at for at, line in enumerate(lines) if line.lstrip().startswith(">>> ")), None)
    if first is not None:
        indent = lines[first][: lines[first].index(">>> ")]
        imports = imports_for("\n".join(lines), places)
        lines[first:first] = [f"{indent}>>> {each}" for each in imports]


def written_elsewhere(_app: Any, _what: str, name: str, member: Any, *_rest: Any) -> bool | None:
    """Omit members that classes inherit from scikit-learn, PyTorch or Python."""
    if name == "extra_repr":
        return True
    function = getattr(member, "fget", None) or getattr(member, "func", None) or member
    module = getattr(function, "__module__", None) or ""
    return None if module.startswith("equipoise") else True


def guides(folder: Path) -> dict[str, list[str]]:
    """By name, the pages of the guide that have it under "See also"."""
    found: dict[str, list[str]] = {}
    for page in sorted(folder.glob("*.md")):
        last = page.read_text(encoding="utf-8").partition("\n## See also\n")[2]
        for name in dict.fromkeys(re.findall(r"\{(?:class|func)\}`~equipoise\.([\w.]+)`", last)):
            found.setdefault(name.rpartition(".")[2], []).append(page.stem)
    return found
