"""What pytest may collect: modules of optional parts only where these are installed."""

from importlib.util import find_spec

# Importing a module for its doctests imports what it needs; the examples of some draw.
_NEEDS = {"cli": "click", "display": "matplotlib", "paper": "matplotlib", "torch": "torch"}
collect_ignore_glob = [
    f"src/equipoise/{room}/*" for room, package in _NEEDS.items() if not find_spec(package)
]
