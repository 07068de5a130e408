"""The scorecard of a dataset with hostile text in every field."""

from __future__ import annotations

from typing import Any

import pytest
from hostile_text import as_lists, check_hostile_text
from reporting_samples import small_run

from proctor.compat.pixie.scorecard import generate_dataset_scorecard_html, scorecards_of
from proctor.reporting.html import environment


def test_hostile_text_in_every_field_becomes_no_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    pages: dict[str, dict[str, Any]] = {}
    with monkeypatch.context() as patched:
        patched.setattr(environment, "write", lambda template, out, **values: pages.update({template: values}))
        generate_dataset_scorecard_html(scorecards_of(small_run())[0])
    [(template, values)] = pages.items()
    check_hostile_text(template, {name: as_lists(value) for name, value in values.items()})
