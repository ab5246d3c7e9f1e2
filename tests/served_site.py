"""The site that ``make docs`` has built, served to a browser of this machine."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

SITE = Path(__file__).parents[1] / "build/docs"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]


def why_not() -> str | None:
    """Why the site cannot be looked at, as the reason of a skip."""
    if CHROMIUM is None:
        return "there is no chromium on this machine"
    return None if (SITE / "search.html").exists() else "there is no site: `make docs` builds it"


class Quiet(SimpleHTTPRequestHandler):
    """Serves files, and logs nothing."""

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def served() -> Iterator[str]:
    """The address of the site, for this machine alone."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=SITE))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()
