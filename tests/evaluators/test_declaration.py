"""An evaluator declares itself once: what its declaration says, and what is derived from it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

import proctor as package
from proctor import Contains, Evaluable, ExactMatch, evaluator, plugins
from proctor.cases.suite import EvaluatorSpec
from proctor.evaluators import index
from proctor.evaluators.declaration import declaration_of
from proctor.evaluators.registry import find_declaration, resolve_evaluator, shipped_declarations

CHECKS = '''
from proctor import ExactMatch, evaluator


@evaluator(threshold=0.8, name="short", report_only=True, scope="case", timeout=3, retries=2, optional=True)
def brevity(evaluable, *, words=20):
    """The answer is short."""
    return words / max(1, len(evaluable.output.split()))


loose = evaluator(ExactMatch(ignore_case=True), output="final", threshold=0.9)
again = evaluator(brevity, threshold=0.1)
'''


@evaluator(family="text", needs="reference", threshold=0.7, example={"words": 3}, version=2, also=("short",))
@dataclass(frozen=True)
class Brevity:
    """The answer is short.

    1 if it has no more than
    `words` words.
    """

    words: int = 20

    def __call__(self, evaluable: Evaluable) -> bool:
        return len(str(evaluable.output).split()) <= self.words


def seen(output: str, expected: str = "") -> Evaluable:
    return Evaluable(eval_output=output, expectation=expected)


def test_a_declaration_says_what_people_are_shown() -> None:
    found = declaration_of(Brevity)
    assert (found.name, found.summary) == ("Brevity", "The answer is short.")
    assert found.score == "1 if it has no more than `words` words."
    assert (found.needs, found.judge, found.threshold, found.version) == (("reference",), "none", 0.7, "2")
    assert [(p.name, p.required, p.default) for p in found.parameters] == [("words", False, 20)]
    assert found.entry == {"Brevity": {"words": 3}}
    assert declaration_of(Brevity(5)) is found


def test_a_class_derived_from_a_declared_one_is_another_evaluator() -> None:
    class Terse(Brevity):
        """The answer is very short."""

    found = declaration_of(Terse)
    assert (found.name, found.family, found.threshold) == ("Terse", "", 0.7)


def test_a_callable_without_a_declaration_is_known_by_its_attributes() -> None:
    class Own:
        """Mine."""

        default_threshold: ClassVar[float] = 0.9
        scope: ClassVar[str] = "case"
        version: ClassVar[str] = "7"
        needs_judge: ClassVar[bool] = True

        def __call__(self, evaluable: Evaluable) -> bool:
            return True

    def plain(evaluable: Evaluable) -> bool:
        return True

    found = declaration_of(Own())
    assert (found.threshold, found.scope, found.version, found.judge) == (0.9, "case", "7", "model")
    assert (declaration_of(plain).name, declaration_of(plain).threshold) == ("plain", 0.5)


def test_settings_of_a_function_hold_unless_the_suite_says_otherwise(tmp_path: Path) -> None:
    (tmp_path / "checks.py").write_text(CHECKS)
    bound = resolve_evaluator(EvaluatorSpec("checks.py:brevity"), tmp_path)
    assert (bound.title, bound.threshold, bound.scope) == ("short", 0.8, "case")
    assert (not bound.spec.report_only, bound.spec.timeout, bound.spec.retries, bound.spec.optional) == (
        False,
        3,
        2,
        True,
    )
    told = resolve_evaluator(
        EvaluatorSpec("checks.py:brevity", {"words": 2}, threshold=0.2, label="mine", scope="turn"), tmp_path
    )
    assert (told.title, told.threshold, told.scope) == ("mine", 0.2, "turn")
    assert told.call(seen("one two three four")) == 0.5


def test_around_an_evaluator_it_makes_a_copy_with_other_settings(tmp_path: Path) -> None:
    (tmp_path / "checks.py").write_text(CHECKS)
    loose = resolve_evaluator(EvaluatorSpec("checks.py:loose"), tmp_path)
    assert (type(loose.call), loose.threshold, loose.spec.output) == (ExactMatch, 0.9, "final")
    again = resolve_evaluator(EvaluatorSpec("checks.py:again"), tmp_path)
    assert (again.threshold, again.spec.report_only) == (0.1, True)
    assert resolve_evaluator(EvaluatorSpec("checks.py:brevity"), tmp_path).threshold == 0.8
    assert declaration_of(ExactMatch).threshold == 0.5


def test_a_copy_can_be_called_like_the_evaluator() -> None:
    async def later(evaluable: Evaluable) -> float:
        return 0.25

    copy: Any = evaluator(ExactMatch(), threshold=1.0)
    assert copy(seen("a", "a")).score == 1.0
    slow: Callable[..., Any] = evaluator(later, threshold=0.2)
    assert asyncio.run(package.evaluate(slow, seen("a"))) == package.Evaluation(0.25)


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"threshold": 80}, "between 0 and 1"),
        ({"scope": "run"}, "'turn' or 'case'"),
        ({"treshold": 1}, "unexpected"),
    ],
)
def test_a_wrong_setting_is_refused(settings: dict[str, Any], error: str) -> None:
    with pytest.raises((TypeError, ValueError), match=error):
        evaluator(**settings)(lambda evaluable: True)


@pytest.mark.needs("adk", "deepeval", "holodeck", "pixie")  # the files were derived with all of them
def test_what_is_derived_from_declarations_is_up_to_date() -> None:
    assert index.main(["--check"]) == 0


def test_a_new_evaluator_is_one_file_and_the_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "shop_evaluators"
    folder.mkdir()
    (folder / "__init__.py").touch()
    head = "from dataclasses import dataclass\nfrom proctor import evaluator\n"
    (folder / "polite.py").write_text(
        f"{head}@evaluator(family='text', also=('Manners', 'polite'))\n@dataclass\nclass Polite:\n    'It is polite.'\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    found = index.collect_declarations("shop_evaluators")
    text = index.render_index(found)
    assert '"Polite": "shop_evaluators.polite:Polite"' in text
    assert "    Manners = Polite\n" in text
    assert '"polite": "shop_evaluators.polite:Polite"' in text
    assert "as polite" not in text
    (folder / "again.py").write_text(f"{head}@evaluator(family='text')\n@dataclass\nclass Polite:\n    '''Again.'''\n")
    with pytest.raises(SystemExit, match="another evaluator is already called Polite"):
        index.collect_declarations("shop_evaluators")


def test_every_name_is_exported_and_a_misspelt_one_names_the_nearest() -> None:
    assert package.Contains is Contains
    assert {item.name for item in shipped_declarations()} <= set(package.__all__)
    for name in package.__all__:
        assert getattr(package, name) is not None
    with pytest.raises(AttributeError, match="did you mean 'Contains'"):
        package.Contians  # type: ignore[attr-defined]  # noqa: B018


def test_evaluators_of_plugins_are_found_by_name_and_alias(monkeypatch: pytest.MonkeyPatch) -> None:
    place = f"{__name__}:Brevity"
    plugin = plugins.Plugin(name="shop", evaluators={"Brief": place}, evaluator_aliases={"near": "LevenshteinMatch"})
    monkeypatch.setattr(plugins, "installed_plugins", lambda: (plugin,))
    assert type(resolve_evaluator(EvaluatorSpec("Brief", {"words": 1})).call) is Brevity
    assert resolve_evaluator(EvaluatorSpec("near")).spec.name == "LevenshteinMatch"
    assert find_declaration("Brief").name == "Brevity"


def test_evaluators_of_other_packages_are_listed_also_if_one_is_broken(
    monkeypatch: pytest.MonkeyPatch, proctor: Callable[..., Any]
) -> None:
    evaluators = {"Brief": f"{__name__}:Brevity", "Broken": "no_such_module:x"}
    monkeypatch.setattr(plugins, "installed_plugins", lambda: (plugins.Plugin(name="shop", evaluators=evaluators),))
    told = proctor("evaluators").out
    assert "From shop\nBrief   The answer is short.  [reference]" in told
    assert "Broken  cannot load the evaluator 'Broken'" in told
