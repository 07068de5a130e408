"""What users who write evaluators with a judge import is public, and costs nothing until it is used."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import proctor
from proctor import judging

PAGE = Path(__file__).parents[2] / "docs" / "judges.md"


@pytest.mark.parametrize("name", judging.__all__)
def test_every_public_name_of_judging_resolves(name: str) -> None:
    assert getattr(judging, name) is not None
    assert name in dir(judging)


def test_importing_judging_loads_no_judge() -> None:
    script = (
        "import sys, proctor.judging; print([m for m in sys.modules if m.startswith(('pydantic', 'proctor.judging.'))])"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, timeout=60, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


def test_the_page_on_judges_imports_public_names_only() -> None:
    imports = re.findall(r"^from (proctor[\w.]*) import (.+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert imports
    public = {"proctor": proctor.__all__, "proctor.judging": judging.__all__}
    for module, names in imports:
        assert set(names.split(", ")) <= set(public.get(module, ())), module
