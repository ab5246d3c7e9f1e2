"""From a summary to one self-contained page: style, script and data are all inside it."""

import base64
import hashlib
import json
from importlib.resources import files
from typing import Any

from equipoise.extras import require
from equipoise.report.view import page_view

# What could end a script element, begin a comment in it, or end a line of JavaScript.
_UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def page(summary: dict[str, Any]) -> str:
    """The page about a comparison."""
    jinja2 = require("jinja2", extra="report")
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=jinja2.FunctionLoader(_source),
    )
    view = page_view(summary)
    style, script = _source("style.css"), _source("page.js")
    return str(
        environment.get_template("template.html").render(
            **view,
            style=jinja2.utils.markupsafe.Markup(style),
            script=jinja2.utils.markupsafe.Markup(script),
            style_hash=_hash(style),
            script_hash=_hash(script),
            embedded=jinja2.utils.markupsafe.Markup(safe_json({"path": view["path"]})),
        )
    )


def _source(name: str) -> str:
    return files("equipoise.report").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """What a content security policy knows an element by: nothing else runs on the page."""
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


def safe_json(value: Any) -> str:
    r"""JSON that stays inside a script element, whatever texts it holds.

    Examples
    --------
    >>> safe_json(["</script>"])
    '["\\u003c/script\\u003e"]'
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for mark, escaped in _UNSAFE.items():
        text = text.replace(mark, escaped)
    # A lone surrogate, which a damaged file may hold, has no bytes in UTF-8.
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
