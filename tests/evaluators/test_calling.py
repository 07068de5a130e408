"""Any function is an evaluator: what it is called with, what reports call it, and when it is another one."""

from __future__ import annotations

import asyncio
import functools
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from proctor import Case, Contains, Evaluable, EvaluatorSpec, InvalidSuite, Suite, Turn, evaluator, run
from proctor.base.errors import UsageError
from proctor.base.fingerprints import code_fingerprint
from proctor.base.functions import title_of
from proctor.cases.encoding import decode_case, encode_case
from proctor.cases.evaluator_specs import read_evaluators, spec_of, write_specs
from proctor.evaluators.calling import call_style, evaluate
from proctor.evaluators.evaluation import NothingToCompare
from proctor.evaluators.registry import resolve_evaluator

SEEN = Evaluable(eval_input="q", eval_output="answer", expectation="wanted", eval_metadata={"m": 1})


def polite(e: Any) -> bool:
    return "please" in e.output


def score(function: Any, evaluable: Evaluable = SEEN) -> Any:
    result = asyncio.run(evaluate(function, evaluable))
    return None if result is None else result.score


def test_a_function_gets_the_values_that_it_names() -> None:
    assert score(lambda output: output == "answer") == 1
    assert score(lambda output, expected: (output, expected) == ("answer", "wanted")) == 1
    assert score(lambda metadata, tool_calls: metadata["m"] == 1 and tool_calls == ()) == 1
    assert score(lambda output, expectation=None: expectation == "wanted") == 1

    def only_by_position(output: str, /, *, expected: str) -> bool:
        return output == "answer" and expected == "wanted"

    assert score(only_by_position) == 1


def test_a_function_with_one_other_parameter_gets_the_evaluable() -> None:
    assert score(lambda e: e.output == "answer" and e.expected == "wanted" and e.metadata == {"m": 1}) == 1

    async def slow(case: Evaluable, *, trace: Any = "none") -> bool:
        return trace is None and case.input == "q"

    assert score(slow) == 1


def test_a_value_that_the_case_does_not_have_skips_unless_it_has_a_default() -> None:
    bare = Evaluable(eval_output="answer")
    with pytest.raises(NothingToCompare, match="needs 'expected', and this case has no expected output"):
        score(lambda output, expected: True, bare)
    assert score(lambda output, expected="none": expected == "none", bare) == 1
    with pytest.raises(NothingToCompare, match="no state"):
        score(lambda state: True, bare)


def test_a_parameter_that_is_no_value_is_reported_with_the_nearest_one() -> None:
    def two(outputs: str, expected: str) -> bool:
        return True

    with pytest.raises(UsageError, match="evaluator 'two': there is no 'outputs'; did you mean 'output'\\? Take one"):
        call_style(two)


def test_functions_lambdas_instances_and_classes_have_names() -> None:
    class Own:
        def __call__(self, e: Any) -> bool:
            return True

    assert title_of(polite) == "polite"
    assert title_of(lambda output: "wait" in output) == '"wait" in output'
    pair = [lambda output: output[1:3] == "ns", lambda output: (len(output) <
                                                               9)]  # fmt: skip
    assert [title_of(item) for item in pair] == ['output[1:3] == "ns"', "len(output) < 9"]
    assert title_of(functools.partial(polite)) == "polite"
    assert title_of(Own()) == "Own"
    assert spec_of(pair[0]).title == 'output[1:3] == "ns"'


def test_an_instance_of_a_shipped_evaluator_is_its_name_with_arguments() -> None:
    [instance, entry] = read_evaluators([Contains(any=("a",)), {"Contains": {"any": ["a"]}}])
    assert instance == entry
    assert resolve_evaluator(instance).fingerprint == resolve_evaluator(entry).fingerprint
    assert write_specs([instance], defaults=()) == [{"Contains": {"any": ["a"]}}]
    assert spec_of(Contains) == EvaluatorSpec("Contains")


def test_settings_around_an_evaluator() -> None:
    loose = spec_of(evaluator(Contains(any=("a",)), report_only=True, threshold=0.2))
    assert loose == EvaluatorSpec("Contains", {"any": ["a"]}, threshold=0.2, report_only=True)
    assert evaluator("ExactMatch", report_only=True) == EvaluatorSpec("ExactMatch", report_only=True)
    strict, weak = spec_of(evaluator(polite, threshold=0.9)), spec_of(evaluator(polite, threshold=0.1))
    assert (strict.threshold, weak.threshold, strict.title) == (0.9, 0.1, "polite")
    assert strict.fingerprint == weak.fingerprint == spec_of(polite).fingerprint
    with pytest.raises(ValueError, match="threshold must be between 0 and 1, not 80"):
        evaluator(polite, threshold=80)


def closure(word: str) -> Any:
    return lambda output: word in output


@pytest.mark.process
def test_a_fingerprint_counts_source_closure_defaults_and_what_is_used(tmp_path: Path) -> None:
    assert code_fingerprint(closure("a")) == code_fingerprint(closure("a")) != code_fingerprint(closure("b"))

    def changed(text: str, *, words: str = "W = 1") -> str:
        (tmp_path / "words.py").write_text(words)
        path = tmp_path / "checks.py"
        path.write_text(f"import words\n\n\ndef agent(q):\n    return 1\n\n\n{text}\n\nLAST = 1\n")
        code = (
            "import checks\nfrom proctor.base.fingerprints import code_fingerprint\nprint(code_fingerprint(checks.f))"
        )
        options: dict[str, Any] = {"capture_output": True, "text": True, "cwd": tmp_path, "check": True}
        return subprocess.run([sys.executable, "-B", "-c", code], **options).stdout

    first = changed("def f(e):\n    return words.W")
    assert first == changed("# a comment elsewhere\ndef f(e):\n    return words.W")
    assert first != changed("def f(e):\n    return words.W + 1")
    assert first != changed("def f(e):\n    return words.W", words="W = 2")


def test_an_evaluator_from_python_is_stored_by_reference_and_fingerprint() -> None:
    case = Case(id="a", turns=(Turn("q"),), evaluators=(spec_of(polite), spec_of(lambda output: bool(output))))
    again = decode_case(encode_case(case))
    assert again.evaluators == case.evaluators
    assert [spec.target for spec in again.evaluators or ()] == [None, None]
    first, second = again.evaluators or ()
    assert first.name.endswith("test_calling.py:polite")
    assert resolve_evaluator(second).title == "bool(output)"  # found in this process
    with pytest.raises(UsageError, match="move it to a file"):
        resolve_evaluator(EvaluatorSpec("own", fingerprint="of another process"))


def test_a_suite_takes_functions_as_evaluators() -> None:
    specs = tuple(read_evaluators([polite, lambda output: len(output) < 99, lambda output, expected: True]))
    suite = Suite("s", (Case(id="a", turns=(Turn("q"),)),), evaluators=specs)
    [trial] = run(suite, lambda q: "Wait, please.").trials
    assert [(item.evaluator, item.outcome.value) for item in trial.scores] == [
        ("polite", "passed"),
        ("len(output) < 99", "passed"),
        ("True", "skipped"),
    ]


def test_a_function_that_names_no_parameter_says_what_to_write() -> None:
    def without() -> bool:
        return True

    def decorated(*args: Any, **kwargs: Any) -> Any:
        return polite(*args, **kwargs)

    for function in (without, decorated):
        with pytest.raises(InvalidSuite, match=f"evaluator '{function.__name__}' names no parameter.*functools.wraps"):
            run(Suite("s", [Case("q")], agent=lambda q: q, evaluators=[function]))
