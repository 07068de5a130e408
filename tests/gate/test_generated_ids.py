"""A case without an id was `case-1` in earlier baselines; it is found by what it asks and expects."""

from __future__ import annotations

from dataclasses import replace

from proctor.gate.baseline import Baseline, BaselineLine, CaseIdentity


def line(case: str, content: str) -> BaselineLine:
    return BaselineLine(suite="s", case=case, agent="a", content=content, evaluators="e", run="r", trials=3, passes=2)


def test_a_case_whose_id_is_made_from_its_input_finds_its_earlier_baseline() -> None:
    baseline = Baseline([line("case-1", "first"), line("case-2", "second"), line("own", "third")])
    identity = CaseIdentity("s", "where-is-it", "a", "second", "e")
    record = baseline.lookup(identity).record
    assert record is not None
    assert (record.trials, record.passes) == (3, 2)
    assert baseline.lookup(replace(identity, content="fourth")).record is None


def test_a_renamed_case_keeps_its_baseline() -> None:
    renamed = CaseIdentity("s", "another-name", "a", "third", "e")
    assert Baseline([line("own", "third")]).lookup(renamed).record is not None
    assert Baseline([line("own", "third")]).lookup(replace(renamed, suite="t")).record is None
