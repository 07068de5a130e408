"""Renders HTML from templates: the only place that imports Jinja2.

All HTML is in `*.html` files in folders called `templates`; a template is named by its path below the package, such as
`reporting/templates/run.html`. Whatever a template prints is text: control characters, characters that reorder text and
commands of CI services are escaped, then HTML is escaped. A variable that a template does not get is an error.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, TextIO

from proctor.base.json_data import Json, to_json
from proctor.reporting.terminal.screen import cut_middle, escape_control
from proctor.reporting.wording import (
    OUTCOME_STYLES,
    duration,
    interval_text,
    money,
    plural,
    rate_text,
    utc_time,
    without_machine_paths,
)
from proctor.results.score import Outcome
from proctor.results.verdict import verdict_word

if TYPE_CHECKING:
    from jinja2 import Environment


def render(template: str, **values: Any) -> str:
    """The rendered page or fragment, for a reader on this machine."""
    return _environment().get_template(template).render(values)


def render_for_others(template: str, **values: Any) -> str:
    """The rendered page or fragment, without the paths of this machine."""
    return _environment_for_others().get_template(template).render(values)


def write(template: str, out: TextIO, **values: Any) -> None:
    """Write a file piece by piece, so that the iterators in `values` are never in memory as a whole.

    A file may be sent to others, so it is without the paths of this machine.
    """
    out.writelines(_environment_for_others().get_template(template).generate(values))


def short(text: str, limit: int = 500) -> str:
    """Text on one line, cut after `limit` characters with a note on how long it was."""
    line = " ".join(text[: limit + 1].split())
    return line if len(text) <= limit else f"{line[:limit]}… ({len(text):,} characters in all)"


def pretty(value: Json) -> str:
    """A value for reading: a string as it is, anything else as indented JSON."""
    return value if isinstance(value, str) else json.dumps(to_json(value), ensure_ascii=False, indent=2)


def percent(number: float) -> str:
    """A share as a CSS percentage, limited to 0% to 100%; 0% for infinity and NaN."""
    share = min(1.0, max(0.0, number)) if math.isfinite(number) else 0.0
    return f"{share * 100:.4g}%"


def iso(seconds: float) -> str:
    """A time for the `datetime` attribute of an element, or "" if no calendar has it."""
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
    except (OverflowError, OSError, ValueError):
        return ""


def asset(name: str) -> str:
    """A style sheet or script of `reporting/assets`."""
    return resources.files("proctor").joinpath("reporting", "assets", name).read_text(encoding="utf-8")


@cache
def _environment_for_others() -> Environment:
    return _environment().overlay(finalize=_escape_for_others)


@cache
def _environment() -> Environment:
    # Imported here: it takes as long as starting Python, and most commands write no HTML.
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("proctor", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_escape_control,
        auto_reload=False,
    )
    environment.filters |= {
        "short": short,
        "cut_middle": cut_middle,
        "pretty": pretty,
        "percent": percent,
        "duration": duration,
        "money": money,
        "utc_time": utc_time,
        "iso": iso,
    }
    environment.globals |= _GLOBALS
    return environment


def _escape_control(value: Any) -> Any:
    """Text with control characters escaped; the output of a macro is passed through."""
    return escape_control(str(value)) if _is_text(value) else value


def _escape_for_others(value: Any) -> Any:
    """The same, without the paths of this machine."""
    return escape_control(without_machine_paths(str(value))) if _is_text(value) else value


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and not hasattr(value, "__html__")


def _asset_markup(name: str) -> Any:
    """A style sheet or script of this package, which needs no escaping."""
    from markupsafe import Markup  # part of Jinja2, see above

    return Markup(asset(name))  # noqa: S704  a file of this package


_GLOBALS: Mapping[str, Any] = {
    "OUTCOME_STYLES": OUTCOME_STYLES,
    "Outcome": Outcome,
    "plural": plural,
    "rate_text": rate_text,
    "interval_text": interval_text,
    "verdict_word": verdict_word,
    "asset": _asset_markup,
}
