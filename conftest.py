"""What pytest may collect: modules of optional parts only where these are installed."""

from importlib.util import find_spec

# Importing a module for its doctests imports what it needs.
collect_ignore_glob = [] if find_spec("click") else ["src/equipoise/cli/*"]
