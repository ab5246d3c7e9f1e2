"""``python -m equipoise.cli``, for where the ``equipoise`` script is not on the path."""

from equipoise.cli import main

if __name__ == "__main__":
    main()
