"""What pytest may collect: modules of optional parts only where these are installed."""

from importlib import import_module
from importlib.util import find_spec

# Importing a module for its doctests imports what it needs; the examples of some draw.
_NEEDS = {
    "src/equipoise/cli/*": "click",
    "src/equipoise/display/*": "matplotlib",
    "src/equipoise/onnx/*": "onnxruntime",
    "src/equipoise/paper/*": "matplotlib",
    "src/equipoise/torch/*": "torch",
    "tests/torch_ranks.py": "torch",
}
collect_ignore_glob = [files for files, package in _NEEDS.items() if not find_spec(package)]
# It may be installed and be too new for this NumPy.
try:
    import_module("pyarrow")
except ImportError:
    collect_ignore_glob += [
        "src/equipoise/blocks/row_groups.py",
        "src/equipoise/tables/streamed.py",
    ]
