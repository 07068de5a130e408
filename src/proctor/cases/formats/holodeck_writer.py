"""Writes suites as HoloDeck's `agent.yaml`, and says what it has no word for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from proctor.cases.formats.environment import VARIABLE
from proctor.cases.formats.holodeck import EXTENSION, KEPT, describes_a_model
from proctor.cases.formats.holodeck_metrics_writer import write_metrics
from proctor.cases.formats.holodeck_tests import EXPECTED_TOOLS
from proctor.cases.formats.holodeck_turns_writer import write_turn
from proctor.cases.formats.ids import UniqueIds, slug
from proctor.cases.formats.model import Written
from proctor.cases.model import Case, Criteria, EvaluatorSpec, Suite, Turn
from proctor.cases.source import Pointer, pointer_text
from proctor.errors import UsageError
from proctor.plain import Json, plain
from proctor.records import record

_UNSAYABLE = re.compile("[\ud800-\udfff]")
_NUMBER_LIKE = re.compile(r"[-+]?[0-9.]+[eE][-+]?[0-9]+")
_FOLDED = re.compile("[\r\x85\u2028\u2029]")
"""Line breaks that YAML turns into others unless they are escaped."""


def write(suites: Sequence[Suite]) -> Written:
    """One agent per suite: the first is the text, the others stand beside it."""
    if not suites:
        raise UsageError("there is no suite to write")
    losses: list[str] = []
    texts = [_yaml(_SuiteWriter(suite, losses).write()) for suite in suites]
    names = UniqueIds()
    files = [f"{names.claim(slug(suite.name) or 'agent')}.yaml" for suite in suites]
    return Written(texts[0], tuple(losses), tuple(zip(files[1:], texts[1:], strict=True)))


@record
class _SuiteWriter:
    suite: Suite
    losses: list[str]

    def write(self) -> dict[str, Json]:
        suite, where = self.suite, f"suite {self.suite.name!r}"
        kept = _mapping(suite.extra.get(EXTENSION))
        data: dict[str, Json] = {"name": suite.name}
        if suite.description:
            data["description"] = suite.description
        if suite.agent is not None:
            data["agent"] = plain(suite.agent)
        data |= {key: plain(kept[key]) for key in KEPT if key in kept}
        if metrics := write_metrics(where, _spoken(suite.evaluators), self.losses):
            data["evaluations"] = {**plain(_mapping(kept.get("evaluations"))), **self._judge(where), "metrics": metrics}
        if execution := {**self._execution(where), **plain(_mapping(kept.get("execution")))}:
            data["execution"] = execution
        ids = UniqueIds()
        data["test_cases"] = [self._test(case, index, ids) for index, case in enumerate(suite.cases)]
        self._lose(
            where,
            {
                "criteria": suite.criteria != Criteria(),
                "the judge": suite.judge is not None and not metrics,
                "the optimizer": bool(kept.get("evaluations")) and not metrics,
                **{f"{EXTENSION}.{key}": key not in (*KEPT, "evaluations", "execution") for key in kept},
            },
        )
        data |= self._extensions(where, {key: value for key, value in suite.extra.items() if key != EXTENSION})
        return {key: self._sayable(value, (key,)) for key, value in data.items()}

    def _judge(self, where: str) -> dict[str, Json]:
        judge = self.suite.judge
        if isinstance(judge, str):
            provider, colon, name = judge.partition(":")
            if not (provider and colon and name):
                self._lose(where, {f"the judge {judge!r}": True})
                return {}
            judge = {"provider": provider, "name": name}
        return {} if judge is None else {"model": plain(judge)}

    def _execution(self, where: str) -> dict[str, Json]:
        settings = self.suite.settings
        self._lose(
            where,
            {
                "repeat": settings.repeat is not None,
                "evaluator timeout": settings.evaluator_timeout is not None,
                "retries": settings.retries is not None,
            },
        )
        given = {"llm_timeout": settings.timeout, "parallel_test_cases": settings.parallel}
        return {key: value for key, value in given.items() if value is not None and (key, value) != _SEQUENTIAL}

    def _test(self, case: Case, index: int, ids: UniqueIds) -> dict[str, Json]:
        where = f"case {case.id!r}"
        data = self._name(case, index, ids)
        inherited = self.suite.evaluators
        if len(case.turns) == 1 and _is_whole_test(case.turns[0]):
            data |= write_turn(where, case.turns[0], self.losses)
            data |= self._evaluations(where, case.evaluators, inherited, case.turns[0])
        else:
            data |= self._evaluations(where, case.evaluators, inherited, None)
            own = inherited if case.evaluators is None else case.evaluators
            data["turns"] = [self._turn(f"{where}, turn {i + 1}", turn, own) for i, turn in enumerate(case.turns)]
        data |= self._extensions(where, case.extra)
        self._lose(where, _unsaid(case))
        return data

    def _turn(self, where: str, turn: Turn, inherited: tuple[EvaluatorSpec, ...]) -> dict[str, Json]:
        data = write_turn(where, turn, self.losses)
        data |= self._evaluations(where, turn.evaluators, inherited, turn)
        if turn.metadata:
            data["turn_config"] = plain(turn.metadata)
        return data

    def _name(self, case: Case, index: int, ids: UniqueIds) -> dict[str, Json]:
        """The name from which the same id and description are read again, where there is one."""
        unnamed = f"test-{index + 1}"
        if not case.description and ids.preview(unnamed) == case.id:
            ids.claim(unnamed)
            return {}
        named = case.description.strip() and ids.preview(case.description) == case.id
        name = case.description if named else case.id
        derived = ids.claim(name)
        self._lose(f"case {case.id!r}", {"description": not named and case.description not in ("", case.id)})
        if derived != case.id:
            self.losses.append(f"case {case.id!r}: its id cannot be expressed; it will be read as {derived!r}")
        return {"name": name}

    def _evaluations(
        self,
        where: str,
        specs: tuple[EvaluatorSpec, ...] | None,
        inherited: tuple[EvaluatorSpec, ...],
        turn: Turn | None,
    ) -> dict[str, Json]:
        """Nothing where the inherited evaluators are in force; the check of expected tools goes without saying."""
        if specs is None:
            return {}
        own = _spoken(specs)
        if own == _spoken(inherited) and turn is not None and turn.expected.tool_calls:
            return {}
        metrics = write_metrics(where, own, self.losses)
        if not metrics and inherited:
            self.losses.append(f"{where}: having no evaluators cannot be expressed; it inherits the agent's")
        return {"evaluations": metrics} if metrics else {}

    def _extensions(self, where: str, extra: Mapping[str, Json]) -> dict[str, Json]:
        self._lose(where, {key: not key.startswith("x-") for key in extra})
        return {key: plain(value) for key, value in extra.items() if key.startswith("x-")}

    def _lose(self, where: str, given: Mapping[str, bool]) -> None:
        self.losses.extend(f"{where}: {name} cannot be expressed" for name, is_given in given.items() if is_given)

    def _sayable(self, value: Json, pointer: Pointer) -> Json:
        """YAML has no word for half a character, and HoloDeck none for a literal `${NAME}`."""
        if isinstance(value, dict):
            return {self._sayable(key, pointer): self._sayable(item, (*pointer, key)) for key, item in value.items()}
        if isinstance(value, list):
            return [self._sayable(item, (*pointer, index)) for index, item in enumerate(value)]
        if not isinstance(value, str):
            return value
        if VARIABLE.search(value) and not describes_a_model(pointer):
            self.losses.append(f"{pointer_text(pointer)}: '${{' will be read as a variable of the environment")
        if _UNSAYABLE.search(value):
            self.losses.append(f"{pointer_text(pointer)}: half a character cannot be expressed; it is replaced")
        return _UNSAYABLE.sub("\ufffd", value)


_SEQUENTIAL = ("parallel_test_cases", 1)


def _mapping(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, Mapping) else {}


def _spoken(specs: tuple[EvaluatorSpec, ...]) -> tuple[EvaluatorSpec, ...]:
    """Without the check that `expected_tools` brings by itself."""
    implied = (EXPECTED_TOOLS, EvaluatorSpec(EXPECTED_TOOLS.name))
    return tuple(spec for spec in specs if spec not in implied)


def _is_whole_test(turn: Turn) -> bool:
    """Whether everything about the turn can be said at the level of the test."""
    return turn.evaluators is None and not turn.metadata and not turn.extra


def _unsaid(case: Case) -> dict[str, bool]:
    return {
        "tags": bool(case.tags),
        "named inputs": bool(case.inputs),
        "metadata": bool(case.metadata),
        "state": bool(case.state),
        "final state": case.final_state is not None,
        "repeat": case.repeat is not None,
        "timeout": case.timeout is not None,
        "skip": case.skip is not None,
        "doubles of tools": bool(case.doubles),
        "scenario": case.scenario is not None,
    }


def _yaml(data: Json) -> str:
    import yaml

    class Dumper(yaml.SafeDumper):
        """Quotes what YAML 1.2 reads as a number and 1.1 as text, and repeats values instead of aliasing them."""

        def ignore_aliases(self, data: object) -> bool:
            return True

    def represent(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
        style = '"' if _NUMBER_LIKE.fullmatch(text) or _FOLDED.search(text) else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)

    Dumper.add_representer(str, represent)
    return yaml.dump(data, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=10_000)
