"""The shape of the source: rooms that only look down, one meaning a name, nothing too long."""

import ast
from collections import Counter
from pathlib import Path

import pytest

import equipoise

ROOT = Path(equipoise.__file__).parent
SOURCES = sorted(ROOT.rglob("*.py"))

# Lowest first: a module imports from its own package and from what stands above it in this list.
LAYERS = [
    "exceptions",
    "extras",
    "arrays",
    "threads",
    "text",
    "registry",
    "files",
    "validation",
    "blocks",
    "weights",
    "losses",
    "sets",
    "risks",
    "metrics",
    "objectives",
    "solvers",
    "goals",
    "decisions",
    "shift",
    "estimators",
    "theory",
    "analysis",
    "torch",
    "onnx",
    "display",
    "tables",
    "persistence",
    "report",
    "paper",
    "cli",
]

# Beside the stack, with the part of it that each may use.
BESIDE = {"datasets": LAYERS[: LAYERS.index("losses")]}
VERSION = "__version__"  # not a part: everyone may say it
USE_DATA = {"report", "paper", "cli"}

ALLOWED = {name: LAYERS[:place] for place, name in enumerate(LAYERS)} | BESIDE
ALLOWED |= {name: [*ALLOWED[name], "datasets"] for name in USE_DATA}

# File names that may stand in every room.
IN_EVERY_ROOM = {"__init__.py", "__main__.py", "base.py", "registry.py"}

# Files that still use private names of other libraries: none is to be added.
PRIVATE_STILL = {
    "decisions/early_stopping.py",
    "decisions/folds.py",
    "decisions/trained.py",
    "persistence/saved_model.py",
}

# Parts whose module-level numbers follow the rule: a comment each, one value a name.
WITH_COMMENTS = [
    "arrays",
    "blocks",
    "exceptions",
    "extras",
    "metrics",
    "risks",
    "sets",
    "shift",
    "text",
    "torch",
    "weights",
]
MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 60


def _part(path):
    """The layer that a source file belongs to; "" for the package itself."""
    first = path.relative_to(ROOT).parts[0]
    return "" if first == "__init__.py" else first.removesuffix(".py")


def _tree(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def _imports(tree):
    """Absolute names of everything imported, wherever it stands in the file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "equipoise":
            yield from (f"equipoise.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def _parts_imported(tree):
    own = [name.split(".") for name in _imports(tree) if name.split(".")[0] == "equipoise"]
    return {name[1] if len(name) > 1 else "" for name in own}


def _code_lines(function):
    """Lines of a function without its docstring."""
    total = function.end_lineno - function.lineno + 1
    if ast.get_docstring(function) is None:
        return total
    docstring = function.body[0]
    return total - (docstring.end_lineno - docstring.lineno + 1)


def _long_functions(tree):
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    found = [node for node in ast.walk(tree) if isinstance(node, functions)]
    return [node.name for node in found if _code_lines(node) > MAX_FUNCTION_LINES]


def _relative_imports(tree):
    found = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level]
    return [node.lineno for node in found]


def _class_names(trees):
    nodes = [node for tree in trees for node in ast.walk(tree)]
    return Counter(node.name for node in nodes if isinstance(node, ast.ClassDef))


def _private_names(tree):
    """Private attributes of other libraries, such as ``torch._C``, with their lines."""
    theirs = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            theirs.update((alias.asname or alias.name).split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not (node.module or "").startswith("equipoise"):
            theirs.update(alias.asname or alias.name for alias in node.names)
            yield from (alias.name for alias in node.names if _is_private(alias.name))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and _is_private(node.attr):
            root = node.value
            while isinstance(root, ast.Attribute):
                root = root.value
            if isinstance(root, ast.Name) and root.id in theirs:
                yield f"{root.id}: {node.attr} in line {node.lineno}"


def _is_private(name):
    return name.startswith("_") and not name.startswith("__")


def _repeated(counts):
    return sorted(name for name, count in counts.items() if count > 1)


each_source = pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))


@each_source
def test_nothing_private_of_other_libraries(path):
    found = bool(list(_private_names(_tree(path))))
    assert found == (path.relative_to(ROOT).as_posix() in PRIVATE_STILL)


def test_private_names_are_found():
    code = "import torch.nn as nn\nfrom triton import _C\nnn.functional._grown()\nnn.Linear()"
    assert list(_private_names(ast.parse(code))) == ["_C", "nn: _grown in line 3"]


@each_source
def test_every_source_has_its_layer(path):
    assert _part(path) in {"", *ALLOWED}, f"give {_part(path)!r} its place in LAYERS or BESIDE"


@each_source
def test_imports_point_down(path):
    if _part(path):
        above = _parts_imported(_tree(path)) - {_part(path), VERSION, *ALLOWED[_part(path)]}
        assert not above, f"{_part(path)} must not import from {sorted(above)}"


@each_source
def test_imports_are_absolute(path):
    assert not _relative_imports(_tree(path))


@each_source
def test_nothing_outgrows_a_reader(path):
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= MAX_FILE_LINES, f"{lines} lines: split it by concept"
    assert not _long_functions(_tree(path))


@each_source
def test_files_are_named_for_what_they_hold(path):
    assert path.stem not in {"utils", "_utils", "util", "helpers", "common", "misc"}


def _numbers(path):
    """Names, values and lines of the numbers that a module assigns at its top."""
    for node in _tree(path).body:
        if isinstance(node, ast.Assign):
            name, value = node.targets[0], node.value
            tuples = isinstance(name, ast.Tuple) and isinstance(value, ast.Tuple)
            pairs = zip(name.elts, value.elts, strict=True) if tuples else [(name, value)]
            yield from ((n.id, ast.unparse(v), node.lineno) for n, v in pairs if _is_number(v))


def _is_number(value):
    allowed = (ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.Constant)
    parts = list(ast.walk(value))
    constants = [part.value for part in parts if isinstance(part, ast.Constant)]
    numeric = all(isinstance(each, int | float) for each in constants)
    return numeric and all(isinstance(part, allowed) for part in parts)


@pytest.mark.parametrize("path", [p for p in SOURCES if _part(p) in WITH_COMMENTS], ids=str)
def test_numbers_at_the_top_of_a_module_have_a_comment(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    bare = [name for name, _, line in _numbers(path) if not lines[line - 2].startswith("#")]
    assert not bare, "say above it what it is, its unit and where the value comes from"


def test_a_name_of_a_number_has_one_value():
    values = {}
    for path in SOURCES:
        if _part(path) in WITH_COMMENTS:
            for name, value, _ in _numbers(path):
                values.setdefault(name, set()).add(value)
    assert not {name: each for name, each in values.items() if len(each) > 1}


def test_no_two_classes_share_a_name():
    assert not _repeated(_class_names(map(_tree, SOURCES)))


def test_no_two_modules_share_a_file_name():
    names = Counter(path.name for path in SOURCES if path.name not in IN_EVERY_ROOM)
    assert not _repeated(names)


def test_the_checks_can_fail():
    twice = _class_names([ast.parse("class A: pass"), ast.parse("def f():\n    class A: pass")])
    assert _repeated(twice) == ["A"]
    up = ast.parse("def f():\n    from equipoise.solvers import x\nimport equipoise")
    assert _parts_imported(up) == {"solvers", ""}
    assert _parts_imported(ast.parse("from equipoise import sets")) == {"sets"}
    assert _relative_imports(ast.parse("from . import x\nfrom .a import b")) == [1, 2]
    body = "    x = 1\n" * MAX_FUNCTION_LINES
    assert _long_functions(ast.parse(f"def f():\n{body}")) == ["f"]
    assert not _long_functions(ast.parse(f"def f():\n    '''Doc\n\n\n'''\n{body[:-10]}"))
