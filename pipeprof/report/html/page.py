"""Render a document as one HTML file that opens offline; its own policy forbids any request."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Any, Final

import orjson
from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from pipeprof.report.document.blocks import Document
from pipeprof.report.document.charts import Timeline
from pipeprof.report.html.charts.spec import spec_of
from pipeprof.report.html.charts.vega import CONFIG
from pipeprof.report.html.glossary import WORDS
from pipeprof.report.text import clean

LIBRARIES: Final = ("vega.min.js", "vega-lite.min.js")
_WHOLE: Final = re.compile(
    r"(?<!\S)--[a-z][a-z0-9-]{1,40}(?![^\s,;:.)])"
    r"|\b\d[\d.,]* (?:%|(?:[nµm]?s|[kMGTPE]?i?B(?:/s)?)(?!\w))"
)
"""The name of an option, or a figure with its unit: no line may break within."""
_UNSAFE: Final = str.maketrans({each: f"\\u{ord(each):04x}" for each in "<>&\u2028\u2029"})


def render_html(document: Document) -> str:
    """Return the page as text, to be written in UTF-8."""
    return _template().render(
        document=document.filled(),
        words={} if document.subject == "sizing" else WORDS,
        specs=in_script(_specs(document)),
        style=Markup(_asset("page.css")),
        script=Markup(_asset("page.js")),
        libraries=[Markup(_library(name)) for name in LIBRARIES],
    )


def in_script(value: Any) -> Markup:
    """Return ``value`` as JSON that is safe in a ``<script>``: it cannot end the script, open a
    comment or break a line of JavaScript."""
    return Markup(orjson.dumps(_cleaned(value)).decode().translate(_UNSAFE))


def _specs(document: Document) -> dict[str, Any]:
    return {
        "config": CONFIG,
        "charts": {
            each.name: {**spec_of(each.data), "description": each.description}
            for each in document.charts()
        },
    }


def _cleaned(value: Any) -> Any:
    """Return ``value`` with control characters escaped in all strings that it contains."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {key: _cleaned(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_cleaned(item) for item in value]
    return value


@cache
def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("pipeprof.report.html", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # names that the user gave are shown on one line and without control characters
        finalize=lambda value: clean(value) if type(value) is str else value,
    )
    environment.filters["whole"] = _whole
    environment.tests["kind"] = lambda block, name: type(block).__name__ == name
    environment.tests["zoomable"] = lambda chart: isinstance(chart.data, Timeline)
    return environment.get_template("page.html.j2")


def _whole(text: str) -> Markup:
    """Return escaped HTML in which no line breaks within options and figures."""
    return Markup(_WHOLE.sub(r'<span class="whole">\g<0></span>', str(escape(clean(text)))))


@cache
def _asset(name: str) -> str:
    return (files("pipeprof.report.html") / name).read_text("utf-8")


@cache
def _library(name: str) -> str:
    """Return a script without its link to a source map, and safe within a ``<script>``."""
    text = (files("pipeprof.report.html") / "vendor" / name).read_text("utf-8")
    lines = [line for line in text.split("\n") if not line.startswith("//# sourceMappingURL")]
    return "\n".join(lines).replace("</script", "<\\/script").replace("<!--", "<\\!--")
