"""`proctor.run` takes paths, suites and lists of them."""

from __future__ import annotations

from pathlib import Path

import pytest

import proctor


def test_suites_are_run_from_paths_and_objects_alike(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text("agent: oracle\ncases: [{id: a, input: q, expected: a}]\n")
    other = tmp_path / "t.yaml"
    other.write_text("agent: oracle\ncases: [{id: b, input: q, expected: b}]\n")
    [suite] = proctor.load(path)
    for given in (path, str(path), suite, [suite], [path]):
        assert [trial.case.id for trial in proctor.run(given).trials] == ["a"]
    mixed = proctor.run([suite, other])
    assert [trial.case.id for trial in mixed.trials] == ["a", "b"]
    assert proctor.verdict(mixed).exit_code == 0


def test_what_the_command_line_can_do_with_a_store_python_can_do_too(tmp_path: Path) -> None:
    path, store = tmp_path / "s.yaml", tmp_path / "store"
    path.write_text("cases: [{id: a, input: q, expected: q}]\n")

    (tmp_path / "app.py").write_text("def echo(question):\n    return question\n")
    agent = f"{tmp_path}/app.py:echo"
    first = proctor.run(path, agent, store=store)
    again = proctor.run(path, agent, store=store, reuse=True)
    assert [trial.reused for trial in (*first.trials, *again.trials)] == [False, True]


def test_trials_can_be_isolated_from_python(tmp_path: Path) -> None:
    path, calls = tmp_path / "s.yaml", []
    path.write_text("cases: [{id: a, input: q, expected: q}]\n")

    def agent(question: str) -> str:
        calls.append(question)
        return question

    [trial] = proctor.run(path, agent, isolate=True).trials
    assert (trial.outcome.value, calls) == ("passed", [])


def test_a_parameter_that_is_not_known_is_refused_with_the_nearest() -> None:
    with pytest.raises(TypeError, match="has no argument 'stor'; did you mean 'store'"):
        proctor.run("s.yaml", stor="x")  # type: ignore[call-arg]


def test_earlier_runs_are_looked_for_in_a_store() -> None:
    with pytest.raises(proctor.UsageError, match="store="):
        proctor.run("s.yaml", resume=True)


def test_cases_are_chosen_by_id_with_stars_and_by_suite() -> None:
    suite = proctor.Suite("s", [proctor.Case(name, name) for name in ("a-1", "a-2", "b")])
    chosen = {name: [case.id for case in proctor.run(suite, lambda q: q, case=name)] for name in ("a*", "s/b", "*2")}
    assert chosen == {"a*": ["a-1", "a-2"], "s/b": ["b"], "*2": ["a-2"]}
    with pytest.raises(proctor.UsageError, match=r"no case 'c\*'"):
        proctor.run(suite, lambda q: q, case="c*")
    with pytest.raises(proctor.UsageError, match="no case matches"):
        proctor.run(suite, lambda q: q, case=[])
