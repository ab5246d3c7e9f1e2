"""The names at the top level: all there, all documented, and none of them paid for in advance."""

import ast
import importlib
import inspect
import re
import subprocess
import sys
from itertools import combinations
from pathlib import Path
from types import ModuleType

import pytest

import equipoise

MODULES = equipoise.PUBLIC_MODULES
POLICY = (Path(__file__).parents[1] / "docs/policy.md").read_text()

HIDE_OPTIONAL = """
import sys

class Hide:
    def find_spec(self, name, path=None, target=None):
        optional = "click cvxpy dask jinja2 matplotlib pandas polars pyarrow torch"
        if name in optional.split():
            raise ImportError(name)

sys.meta_path.insert(0, Hide())
"""


def _in_fresh_interpreter(code):
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.split()


def _names_for_type_checkers():
    tree = ast.parse(Path(equipoise.__file__).read_text())
    blocks = [node for node in tree.body if isinstance(node, ast.If)]
    imports = [node for block in blocks for node in block.body]
    return sorted(alias.name for node in imports for alias in node.names)


@pytest.mark.parametrize("name", equipoise.__all__)
def test_every_public_name_resolves_and_has_a_docstring(name):
    value = getattr(equipoise, name)
    assert len(inspect.getdoc(value) or "") > 20


@pytest.mark.parametrize("name", equipoise.__all__)
def test_a_public_name_is_the_one_of_its_home(name):
    value = getattr(equipoise, name)
    if isinstance(value, ModuleType):
        assert value.__name__ == f"equipoise.{name}"
    else:
        home = importlib.import_module(f"equipoise.{equipoise._HOME[name]}")
        assert value is getattr(home, name) and name in home.__all__


def test_the_listings_agree():
    assert sorted(equipoise.__all__) == _names_for_type_checkers()
    assert dir(equipoise) == sorted([*equipoise.__all__, "PUBLIC_MODULES", "__version__"])


def test_the_surface_is_small():
    assert len(equipoise._HOME) <= 30 and len(MODULES) <= 12


def test_the_policy_promises_the_same_names():
    names, modules = POLICY.split("results:")[1].split("Everything else")[0].split("- Twelve")
    assert sorted(re.findall(r"`(\w+)`", names)) == sorted(equipoise._HOME)
    assert sorted(re.findall(r"`equipoise\.(\w+)`", modules)) == sorted(MODULES)


@pytest.mark.parametrize("module", MODULES)
def test_every_public_function_has_an_example(module):
    module = pytest.importorskip(f"equipoise.{module}", exc_type=ImportError)
    public = {name: getattr(module, name) for name in module.__all__}
    functions = [name for name, value in public.items() if inspect.isfunction(value)]
    assert not [name for name in functions if ">>> " not in (inspect.getdoc(public[name]) or "")]


@pytest.mark.parametrize("name", sorted(equipoise._HOME))
def test_every_name_at_the_top_has_an_example(name):
    value = getattr(equipoise, name)
    parts = [value, *vars(value).values()] if inspect.isclass(value) else [value]
    assert any(">>> " in (inspect.getdoc(part) or "") for part in parts)


def signatures(module):
    """What ``help`` prints first of all functions and methods that a module offers, by name."""
    module = pytest.importorskip(f"equipoise.{module}", exc_type=ImportError)
    public = {name: getattr(module, name) for name in module.__all__}
    for name in [name for name, value in public.items() if inspect.isclass(value)]:
        members = inspect.getmembers(public[name])
        shown = [(n, each) for n, each in members if n == "__init__" or not n.startswith("_")]
        public |= {f"{name}.{method}": each for method, each in shown}
    return {
        name: str(inspect.signature(value))
        for name, value in public.items()
        if inspect.isroutine(value) and getattr(value, "__module__", "").startswith("equipoise")
    }


@pytest.mark.parametrize("module", MODULES)
def test_help_begins_with_a_signature_that_can_be_read(module):
    for name, text in signatures(module).items():
        # Names of types as they are written, not what they stand for in other packages.
        assert not re.search(r"numpy|collections|typing|equipoise\.", text), f"{name}{text}"
        assert max(map(len, text.split(", "))) <= 80, f"{name}{text}"
        assert "**options" not in text, f"{name}{text}"


def test_every_public_module_says_what_it_offers():
    for name in set(equipoise.__all__) - set(equipoise._HOME):
        module = getattr(equipoise, name)
        assert len(set(module.__all__)) == len(module.__all__) > 0, name
        assert all(hasattr(module, public) for public in module.__all__), name


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'equipoise' has no attribute 'nonsense'"):
        equipoise.nonsense  # noqa: B018


def test_import_star_brings_all():
    names = _in_fresh_interpreter("from equipoise import *; print(*dir())")
    assert set(equipoise.__all__) <= set(names)


def test_importing_the_package_loads_nothing_heavy():
    loaded = _in_fresh_interpreter("import equipoise, sys; print(*sys.modules)")
    heavy = {"numpy", "scipy", "sklearn", "pandas"} | {f"equipoise.{n}" for n in MODULES}
    assert not heavy & set(loaded)


def test_the_package_works_without_any_optional_dependency():
    _in_fresh_interpreter(f"{HIDE_OPTIONAL}\nfrom equipoise import *\ndatasets.load_thyroid()")


def test_an_optional_module_says_what_to_install():
    attempt = "try:\n    import equipoise.torch\nexcept ImportError as error:\n    print(error)"
    said = " ".join(_in_fresh_interpreter(f"{HIDE_OPTIONAL}\n{attempt}"))
    assert said.endswith("Install it with: pip install 'equipoise[torch]'")


ESTIMATORS = [name for name in equipoise.__all__ if hasattr(getattr(equipoise, name), "fit")]


def test_estimators_have_their_arguments_in_one_order():
    places = {
        name: list(inspect.signature(getattr(equipoise, name)).parameters) for name in ESTIMATORS
    }
    assert len(places) == 7
    for one, other in combinations(places, 2):
        shared = [name for name in places[one] if name in places[other]]
        assert shared == [name for name in places[other] if name in places[one]], (one, other)
    assert all("verbose" in names for names in places.values())
    tuned = [names for name, names in places.items() if name != "RobustnessCV"]
    assert all({"goal", "class_prior"} <= set(names) for names in tuned)
    # Levels of coverage are order statistics: nothing is pooled.
    assert sum("pooling" in names for names in tuned) == len(tuned) - 1
