"""Use an installed equipoise as a visitor would: python use_installed.py README.md

It needs nothing but the package and what comes with it. What an optional part is needed for is left
out where that is not installed, and said. Nothing is imported from a checkout.
"""

import os
import re
import subprocess
import sys
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import equipoise
from equipoise.report import compare_predictions


def use_data_and_files():
    """The bundled data, and a model that is saved and loaded."""
    X, y = equipoise.datasets.load_thyroid(return_X_y=True)
    assert X.shape == (7200, 21) and (resources.files("equipoise") / "py.typed").is_file()
    model = equipoise.RobustLogisticRegression("worst_class").fit(X[::20], y[::20])
    equipoise.save_model(model, "model.equipoise")
    assert (equipoise.load_model("model.equipoise").predict(X) == model.predict(X)).all()


def use_readme(text):
    """The README's Python, as it stands."""
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    session: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), session)
    assert blocks, "the README has no Python"


def use_page():
    """A page, which is made of templates."""
    y = equipoise.datasets.load_thyroid().target
    table = np.array([0.1, 0.1, 0.8]) + 0.1 * np.random.default_rng(0).random((len(y), 3))
    table /= table.sum(axis=1, keepdims=True)
    compare_predictions(y, {"mine": table}).save("page.html")
    page = Path("page.html").read_text(encoding="utf-8")
    assert "<style" in page and "<script" in page and "hypothyroid" in page


def use_command_line():
    """The command beside this Python: fit and predict."""
    X, y = equipoise.datasets.load_thyroid(return_X_y=True)
    rows = [f"{a},{b},{name}" for (a, b), name in zip(X[::20, -2:], y[::20], strict=True)]
    Path("rows.csv").write_text("\n".join(["a,b,label", *rows]) + "\n", encoding="utf-8")
    command = str(Path(sys.executable).with_name("equipoise"))
    fit = "fit rows.csv --target label --goal balanced --out cli.equipoise"
    for words in ("--version", fit, "predict cli.equipoise rows.csv --out said.csv"):
        subprocess.run([command, *words.split()], check=True)
    said = Path("said.csv").read_text(encoding="utf-8").splitlines()
    assert len(said) == len(rows) + 1


def main(readme):
    """Everything, in an empty folder."""
    home = Path(equipoise.__file__).resolve()
    assert home.is_relative_to(Path(sys.prefix).resolve()), f"this is not the installed one: {home}"
    text = Path(readme).read_text(encoding="utf-8")
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        use_data_and_files()
        use_readme(text)
        parts = {use_page: ["jinja2", "pandas"], use_command_line: ["click", "pandas"]}
        for part, needed in parts.items():
            missing = [name for name in needed if find_spec(name) is None]
            if missing:
                sys.stdout.write(f"{part.__name__} is left out: no {' and no '.join(missing)}.\n")
            else:
                part()
        os.chdir(Path(readme).resolve().parent)
    sys.stdout.write(f"equipoise {equipoise.__version__} works.\n")


if __name__ == "__main__":
    main(str(Path(sys.argv[1]).resolve()))
