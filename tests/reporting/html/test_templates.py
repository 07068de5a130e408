"""HTML is written by templates, and only by them."""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from reporting_samples import make_run, report, trial
from repository import ROOT

from proctor.reporting.comparison_report import WRITERS
from proctor.reporting.html import environment, report_page
from proctor.results.comparison.compare import compare_runs

SOURCE = ROOT / "src" / "proctor"
FOLDERS = (
    "reporting",
    "viewer",
    "compat",
    *(pytest.param(name, marks=pytest.mark.needs(name)) for name in ("mutation", "calibration")),
)
MARKDOWN = SOURCE / "reporting" / "markdown"
TAG = re.compile(
    r"</?(a|article|aside|b|body|button|code|dd|del|details|div|dl|dt|footer|form|h[1-6]|head|header|html|i|ins|label|li"
    r"|main|nav|ol|option|p|path|pre|rect|script|section|select|small|span|strong|style|summary|svg|table|tbody|td|th"
    r"|thead|title|tr|ul)( [a-z-]+=|/?>)"
)


def _strings(path: Path) -> Iterator[ast.Constant]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and node.body
        if isinstance(node.body[0], ast.Expr)
    }
    return (node for node in found if id(node) not in docstrings)


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_python_file_has_html_in_it(folder: str) -> None:
    files = [path for path in (SOURCE / folder).rglob("*.py") if not path.is_relative_to(MARKDOWN)]
    wrong = [
        f"{path.relative_to(SOURCE)}:{node.lineno}: {found.group()}"
        for path in files
        for node in _strings(path)
        if (found := TAG.search(str(node.value)))
    ]
    assert files
    assert wrong == []


@pytest.mark.process
def test_jinja_is_imported_only_when_html_is_written() -> None:
    script = (
        "import sys, proctor.api, proctor.reporting.reporters, proctor.cli\n"
        "assert 'jinja2' not in sys.modules and 'markupsafe' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_a_name_that_a_template_does_not_get_is_an_error() -> None:
    with pytest.raises(Exception, match="has no attribute"):
        environment._environment().from_string("{{ run.nonsense }}").render(run=make_run([]))


def test_what_a_ci_service_would_take_for_a_command_is_torn_apart() -> None:
    template = environment._environment().from_string("<pre>{{ text }}</pre>")
    assert "::error" not in template.render(text="::error file=x::owned")
    assert "##vso[" not in template.render(text="##vso[task.complete]")


def test_a_comparison_has_no_script_that_looks_for_trials() -> None:
    out = io.StringIO()
    WRITERS["html"](compare_runs(make_run([trial("a")]), make_run([trial("a")])), out)
    assert "<script" not in out.getvalue()
    assert report(report_page, make_run([trial("a")])).count("<script>") == 1
