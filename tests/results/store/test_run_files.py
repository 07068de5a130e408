"""A run as one file: nothing is lost on the way, and no file from elsewhere does harm."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reporting_samples import HOSTILE, small_run, trial

from proctor.base.errors import ProctorError, StoreError, UsageError
from proctor.base.git import GitState
from proctor.results.run import Run, RunStatus
from proctor.results.store.run_files import export_run, import_run, open_run
from proctor.results.store.run_names import validate_run_name
from proctor.results.store.store import Store
from proctor.results.trial import Trial
from proctor.tracing.spans import ObserveSpan


def kept(folder: Path, trials: list[Trial]) -> Store:
    store = Store(folder)
    run = Run("20260101-000000-cafe", 1.0, git=GitState("a" * 40, "main", True), name="base", plan="plan")
    no = store.add_run(run)
    store.add_trials(no, trials)
    run.status, run.planned = RunStatus.FINISHED, len(trials)
    store.finish_run(run)
    return store


def exported(store: Store) -> str:
    out = io.StringIO()
    export_run(store.find_run("last"), out)
    return out.getvalue()


def imported(folder: Path, text: str) -> Store:
    store = Store(folder)
    import_run(store, io.StringIO(text), "run.jsonl")
    return store


def test_a_run_comes_back_whole(tmp_path: Path) -> None:
    span = ObserveSpan(span_id="1", trace_id="t", name="step", started_at=1.0, ended_at=2.0)
    trials = [replace(item, position=at) for at, item in enumerate(small_run().trials)]
    trials[0] = replace(trials[0], spans=(span,))
    store = kept(tmp_path / "a", [*trials, trial("odd", answer=HOSTILE, position=99)])
    other = imported(tmp_path / "b", exported(store))
    assert list(other.trials(other.find_run("last").no)) == list(store.trials(1))
    assert [s.name for s in next(iter(other.trials(1))).spans] == ["step"]
    before, after = store.find_run("last"), other.find_run("base")
    assert list(before.summaries) == list(after.summaries)
    same = {"no": 0, "store": None, "summaries": (), "trials": ()}
    assert replace(before, **same) == replace(after, **same)
    assert exported(other) == exported(store)


def test_importing_twice_changes_nothing(tmp_path: Path) -> None:
    text = exported(kept(tmp_path / "a", [trial("x")]))
    store = imported(tmp_path / "b", text)
    row, is_new = import_run(store, io.StringIO(text), "run.jsonl")
    assert not is_new
    assert len(store.runs()) == len(list(store.trials(row.no))) == 1


def test_another_run_of_the_same_id_is_never_written_over(tmp_path: Path) -> None:
    store = kept(tmp_path / "a", [trial("x")])
    with pytest.raises(UsageError, match="nothing was imported"):
        import_run(store, io.StringIO(exported(kept(tmp_path / "b", [trial("x"), trial("y", position=1)]))), "f")
    assert len(list(store.trials(1))) == 1


def damaged(text: str) -> dict[str, str]:
    lines = text.splitlines()
    newer = json.dumps(json.loads(lines[0]) | {"proctor_run": 99})
    return {
        "": "run.jsonl:1: not a file that `proctor runs export` wrote",
        "{}": "run.jsonl:1: not a file that `proctor runs export` wrote",
        "hello": "run.jsonl:1: not a file that `proctor runs export` wrote",
        "[1]": "run.jsonl:1: not a file that `proctor runs export` wrote",
        "[" * 100_000: "run.jsonl:1: not a file that `proctor runs export` wrote",
        '{"proctor_run":1}': "run.jsonl:1: cannot read the facts about the run",
        text.replace("20260101-000000-cafe", "../../outside", 1): "run.jsonl:1: cannot read the facts about the run",
        text.replace('"name":"base"', '"name":"a/b"', 1): "run.jsonl:1: cannot read the facts about the run",
        text.replace('"started_at":', '"started_at":NaN,"x":', 1): "run.jsonl:1: cannot read the facts about the run",
        newer: "run.jsonl:1: written by a newer version of Proctor; update Proctor to read it",
        "\n".join(lines[:-1]): "run.jsonl is incomplete: it ends after 1 trials",
        text[:-30]: "run.jsonl:3: not valid JSON; the file is incomplete or damaged",
        "\n".join([lines[0], *lines[2:]]): "run.jsonl:2: cannot read the line",
        "\n".join([*lines[:2], '{"suite":1,"case":1}', lines[-1]]): "run.jsonl:3: cannot read the line",
        "\n".join([*lines[:-1], '{"end":7}']): "run.jsonl:4: the file has 1 trials instead of 7",
    }


def test_a_damaged_file_is_refused_with_its_line_and_leaves_nothing_behind(tmp_path: Path) -> None:
    text = exported(kept(tmp_path / "a", [trial("x")]))
    for number, (damage, message) in enumerate(damaged(text).items()):
        store = Store(tmp_path / f"b{number}")
        with pytest.raises(UsageError) as refused:
            import_run(store, io.StringIO(damage), "run.jsonl")
        assert str(refused.value).startswith(message)
        assert store.runs() == []
        store.close()


SUITE = {
    "name": "s",
    "path": None,
    "format": "native",
    "agent": "a",
    "agent_fingerprint": "f",
    "cases": 1,
    "planned": 1,
}


@pytest.mark.parametrize("what", ["gate", "gate verdict", "no gate verdict", "gated suites", "criteria", "verdict"])
def test_values_that_this_version_does_not_know_are_refused_with_their_line(what: str, tmp_path: Path) -> None:
    """A newer Proctor may write such; they must not end in a traceback when the run is shown."""
    first, *rest = exported(kept(tmp_path / "a", [trial("x")])).splitlines()
    head = json.loads(first)
    suite = {"name": "s", "path": None, "format": "native", "agent": "a", "agent_fingerprint": "f"}
    info = {
        "gate": {"gate": {}},
        "gate verdict": {"gate": {**GATE, "verdict": "maybe"}},
        "no gate verdict": {"gate": {**GATE, "verdict": None}},
        "gated suites": {"gate": {**GATE, "suites": None}},
        "criteria": {"suites": [{**suite, "criteria": {"trials": "most"}, "cases": 1, "planned": 1}]},
        "verdict": {"verdict": {"outcome": "splendid"}},
    }[what]
    path = tmp_path / "newer.jsonl"
    path.write_text("\n".join([json.dumps({**head, "info": {**head["info"], **info}}), *rest]), encoding="utf-8")
    with pytest.raises(UsageError, match=r"newer\.jsonl:1: cannot read the facts about the run") as failure:
        open_run(tmp_path, str(path))
    assert "__init__" not in str(failure.value)
    assert "StoreError" not in str(failure.value)


@pytest.mark.parametrize(
    "info",
    [
        {"suites": [{**SUITE, "path": "\ud800"}]},
        {"suites": [{**SUITE, "path": "a\0b"}]},
        {"evaluator_keys": {"s": {}}},
    ],
    ids=["surrogate", "zero byte", "no general key"],
)
def test_facts_that_would_end_a_command_later_are_refused_with_their_line(tmp_path: Path, info: Any) -> None:
    first, *rest = exported(kept(tmp_path / "a", [trial("x")])).splitlines()
    head = json.loads(first)
    lines = [json.dumps({**head, "info": {**head["info"], **info}}), *rest]
    with pytest.raises(UsageError, match=r"run\.jsonl:1: cannot read the facts about the run"):
        import_run(Store(tmp_path / "b"), lines, "run.jsonl")


@pytest.mark.parametrize(
    "span",
    [
        {"duration_ms": "x"},
        {"duration_ms": None},
        {"started_at": []},
        {"name": 1},
        {"metadata": ["x"]},
        {"error": {}},
        {"type": "llm", "input_tokens": "many"},
        {"type": "llm", "finish_reasons": "stop"},
    ],
    ids=str,
)
def test_a_span_with_a_value_of_a_wrong_type_is_refused_with_its_line(tmp_path: Path, span: dict[str, Any]) -> None:
    *lines, row, end = exported(kept(tmp_path / "a", [trial("x")])).splitlines()
    spans = [{"span_id": "1", "trace_id": "2", "started_at": 1.0, **span}]
    with pytest.raises(UsageError, match=r"run\.jsonl:3: cannot read the line"):
        import_run(Store(tmp_path / "b"), [*lines, json.dumps({**json.loads(row), "spans": spans}), end], "run.jsonl")


GATE = {
    "verdict": "no_regression",
    "reason": "",
    "baseline": "b",
    "alpha": 0.05,
    "max_trials": 3,
    "extra_trials": 0,
    "stopped": None,
    "drift": {"rounds": 1, "p_value": 1.0, "better_p_value": 1.0, "proven": False, "in_doubt": False},
    "cases": [],
    "suites": [],
}


def test_an_unknown_outcome_of_a_trial_or_score_is_refused_with_its_line(tmp_path: Path) -> None:
    text = exported(kept(tmp_path / "a", [trial("x")]))
    with pytest.raises(UsageError, match=r"run\.jsonl:3: cannot read the line: .*'splendid' is not a valid Outcome"):
        imported(tmp_path / "b", text.replace('"outcome":"passed"', '"outcome":"splendid"'))


KEYS = st.sampled_from(["case", "content", "suite", "replies", "turns", "id", "end", "v"])
VALUES = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
ANYTHING = st.recursive(VALUES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4))


def test_secrets_in_a_file_from_elsewhere_are_masked(tmp_path: Path) -> None:
    key = "sk-proj-" + "a1B2c3D4" * 6
    text = exported(kept(tmp_path / "a", [trial("x", answer=f"the key is {key}")]))
    assert key in text  # this store was filled by hand, without a masker
    store = imported(tmp_path / "b", text)
    [again] = store.trials(1)
    assert key not in again.replies[0].text
    open_store = Store(tmp_path / "c")
    import_run(open_store, io.StringIO(text), "run.jsonl", keep_secrets=True)
    [whole] = open_store.trials(1)
    assert key in whole.replies[0].text


@given(ANYTHING.filter(lambda data: not isinstance(data, dict) or "end" not in data))
def test_whatever_a_line_holds_one_sentence_comes_out(tmp_path_factory: pytest.TempPathFactory, data: object) -> None:
    head = {"proctor_run": 1, "id": "x", "started_at": 1, "status": "finished", "info": {}}
    store = Store(tmp_path_factory.mktemp("store"))
    lines = [json.dumps(head), json.dumps(data), json.dumps(data)]
    with pytest.raises(ProctorError) as refused:
        import_run(store, lines, "run.jsonl")
    assert str(refused.value).startswith("run.jsonl")
    store.close()


def test_runs_are_found_by_name_and_counted_back(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for run_id, name in (("2025-a", "nightly"), ("2025-b", ""), ("2025-c", "nightly"), ("2025-d", "2025-b")):
        store.add_run(Run(run_id, 0.0, name=name))
    found = {
        wanted: store.find_run(wanted).id for wanted in ("last", "last~0", "last~1", "last~3", "nightly", "nightly~1")
    }
    assert list(found.values()) == ["2025-d", "2025-d", "2025-c", "2025-a", "2025-c", "2025-a"]
    assert store.find_run("2025-b").id == "2025-b"  # an id goes before a name
    missing = {
        "last~9": "only 4 runs",
        "nightly~5": "only 2 runs named 'nightly'",
        "nigh": "no run 'nigh'",
        "": "no run",
    }
    for wanted, told in missing.items():
        with pytest.raises(StoreError, match=told):
            store.find_run(wanted)


@pytest.mark.parametrize("name", ["", "  ", "last", "a~1", "a@b", "-x", "a/b", "a\\b", "x" * 101, "a\nb", " a"])
def test_a_name_that_could_be_taken_for_another_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="the run name"):
        validate_run_name(name)


def test_a_file_is_a_run_too(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text(exported(kept(tmp_path / "a", [trial("x")])))
    store, row = open_run(tmp_path / "nowhere", str(path))
    assert [item.case.id for item in store.trials(row.no)] == ["x"]
    assert not (tmp_path / "nowhere").exists()
    folder = store.folder
    store.close()
    assert not folder.exists()
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="not a file that"):
        open_run(tmp_path, str(path))
    with pytest.raises(UsageError, match="No such file"):
        open_run(tmp_path, str(tmp_path / "gone.jsonl"))
