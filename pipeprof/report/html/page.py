"""From a result to a page: a view of it, written by a template, with all that it needs inside."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final

import orjson
from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from pipeprof.model import Profile, SweepResult
from pipeprof.report.base import Result
from pipeprof.report.html.comparison import comparison_view
from pipeprof.report.html.profile import profile_view
from pipeprof.report.html.shapes import View, charts
from pipeprof.report.html.sweep import sweep_view
from pipeprof.report.html.vega import CONFIG
from pipeprof.report.html.words import WORDS
from pipeprof.report.layout import clean

LIBRARIES: Final = ("vega.min.js", "vega-lite.min.js")
_WHOLE: Final = re.compile(
    r"(?<!\S)--[a-z][a-z0-9-]{1,40}(?![^\s,;:.)])"
    r"|\b\d[\d.,]* (?:%|(?:[nµm]?s|[kMGTPE]?i?B(?:/s)?)(?!\w))"
)
"""The name of an option; a figure with its unit."""
_UNSAFE: Final = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026",
                  "\u2028": "\\u2028", "\u2029": "\\u2029"}  # fmt: skip


class HtmlRenderer:
    """One file that opens offline: no request leaves it, which its own policy forbids."""

    name = "html"

    def render(self, result: Result) -> str:
        return render_html(result)


def render_html(result: Result) -> str:
    """The page, as text to be written in UTF-8."""
    return render_view(_view(result), WORDS)


def render_view(view: View, words: Mapping[str, str]) -> str:
    """``words``: its glossary."""
    return _template().render(
        view=view,
        words=words,
        specs=in_script(_specs(view)),
        style=Markup(_asset("page.css")),
        script=Markup(_asset("page.js")),
        libraries=[Markup(_library(name)) for name in LIBRARIES],
    )


def _view(result: Result) -> View:
    if isinstance(result, Profile):
        return profile_view(result)
    return sweep_view(result) if isinstance(result, SweepResult) else comparison_view(result)


def in_script(value: Any) -> Markup:
    """``value`` as JSON that may stand in a ``<script>``: nothing in it ends the script, opens a
    comment or breaks a line of JavaScript."""
    text = orjson.dumps(_cleaned(value)).decode()
    for unsafe, escaped in _UNSAFE.items():
        text = text.replace(unsafe, escaped)
    return Markup(text)


def _specs(view: View) -> dict[str, Any]:
    return {
        "config": CONFIG,
        "charts": {
            each.name: {**each.spec, "description": each.description} for each in charts(view)
        },
    }


def _cleaned(value: Any) -> Any:
    """Without what would steer a display, all the way down."""
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
        # whatever the user named is shown as it is, but on one line and steering nothing
        finalize=lambda value: clean(value) if type(value) is str else value,
    )
    environment.filters["sentence"] = _sentence
    environment.filters["whole"] = _whole
    return environment.get_template("page.html.j2")


def _whole(text: str) -> Markup:
    """With no line's end where one would be read wrongly."""
    return Markup(_WHOLE.sub(r'<span class="whole">\g<0></span>', str(escape(clean(text)))))


def _sentence(headline: str, verdict: str) -> str:
    """Without the verdict that it opens with, which stands beside it."""
    if not headline.lower().startswith(verdict):
        return headline
    rest = headline[len(verdict) :].lstrip(": ")
    return rest[:1].upper() + rest[1:]


@cache
def _asset(name: str) -> str:
    return (files("pipeprof.report.html") / name).read_text("utf-8")


@cache
def _library(name: str) -> str:
    """Without its pointer to a file that is not there."""
    text = (files("pipeprof.report.html") / "vendor" / name).read_text("utf-8")
    lines = [line for line in text.split("\n") if not line.startswith("//# sourceMappingURL")]
    return "\n".join(lines).replace("</script", "<\\/script").replace("<!--", "<\\!--")
