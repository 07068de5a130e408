"""`test_shop = Suite(...)` in a test module: pytest collects it, with one item per trial."""

from __future__ import annotations

import pytest

pytest_plugins = "pytester"

MODULE = """
from proctor import Case, Expected, Keywords, Settings, Suite, Turn

def case(name, word, **more):
    return Case(id=name, turns=(Turn(input=name, expected=Expected(contains=Keywords(any=(word,)))),), **more)

def agent(question):
    return "It is shipped."

test_shop = Suite(name="shop", agent=agent, cases=(case("good", "shipped", tags=("smoke",)), case("bad", "sorry")))
"""


def test_each_case_is_an_item(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_shop=MODULE)
    result = pytester.runpytest("-v")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["test_shop.py::test_shop::good PASSED*", "test_shop.py::test_shop::bad FAILED*"])
    assert (pytester.path / ".proctor").is_dir(), "the session has a run in the store"


def test_cases_are_chosen_as_other_tests_are(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_shop=MODULE)
    pytester.runpytest("test_shop.py::test_shop::good").assert_outcomes(passed=1)
    pytester.runpytest("-k", "smoke").assert_outcomes(passed=1, deselected=1)


def test_repeats_are_items(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_shop=MODULE.replace("cases=(", "settings=Settings(repeat=2), cases=("))
    result = pytester.runpytest("-v", "-k", "good")
    result.assert_outcomes(passed=2, deselected=2)
    result.stdout.fnmatch_lines(["*::good?1? PASSED*", "*::good?2? PASSED*"])


def test_a_suite_under_another_name_is_not_collected(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_shop=MODULE.replace("test_shop =", "shop ="))
    pytester.runpytest().assert_outcomes()


def test_a_suite_in_a_class_is_collected(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_shop=MODULE + "\nclass TestDesk:\n    test_desk = test_shop\n\ndel test_shop\n")
    pytester.runpytest().assert_outcomes(passed=1, failed=1)


def test_a_suite_with_a_problem_is_a_collection_error(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_shop=MODULE.replace('case("bad", "sorry")', 'case("good", "sorry")'))
    result = pytester.runpytest()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*have the same id 'good'*"])
