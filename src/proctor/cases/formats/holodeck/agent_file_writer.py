"""Writes suites as HoloDeck's `agent.yaml`, evaluators as its metrics, and says what it cannot express."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import yaml

from proctor.base.environment import VARIABLE
from proctor.base.json_data import UNSET, Json, plain, show
from proctor.base.source import Pointer, pointer_text
from proctor.cases.formats.format_spec import (
    UniqueIds,
    Written,
    cannot_express,
    given_names,
    one_file_each,
    unwritten_case_parts,
    written_extensions,
)
from proctor.cases.formats.holodeck.agent_file import KEPT, describes_a_model
from proctor.cases.formats.holodeck.keys import EXTENSION
from proctor.cases.formats.holodeck.metrics import EXACT, FLAGS, JUDGED, LEXICAL, MOST_RETRIES, RAG, STANDARD
from proctor.cases.formats.holodeck.test_cases import EXPECTED_TOOLS, FILE_TYPES, MATCHER_KEYS, MOST_FILES
from proctor.cases.matchers import Equals, Fuzzy, Matcher, Regex
from proctor.cases.suite import Attachment, Case, Criteria, EvaluatorSpec, ExpectedCall, Suite, Turn

_HALF_CHARACTER = re.compile("[\ud800-\udfff]")
_NUMBER_LIKE = re.compile(r"[-+]?[0-9.]+[eE][-+]?[0-9]+")
_FOLDED = re.compile("[\r\x85\u2028\u2029]")
"""Line breaks that YAML turns into others unless they are escaped."""


def write_agent_files(suites: Sequence[Suite]) -> Written:
    """One agent per suite."""
    return one_file_each(
        suites, lambda suite, losses: _yaml(_SuiteWriter(suite, losses).write()), name="agent", ending=".yaml"
    )


@dataclass(frozen=True, slots=True)
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
        data |= written_extensions(
            where, {key: value for key, value in suite.extra.items() if key != EXTENSION}, self.losses
        )
        return {key: self._writable(value, (key,)) for key, value in data.items()}

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
                "largest reply": settings.max_reply_bytes is not None,
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
        data |= written_extensions(where, case.extra, self.losses)
        self._lose(where, {"named inputs": bool(case.inputs), "metadata": bool(case.metadata)})
        self.losses.extend(cannot_express(where, unwritten_case_parts(case)))
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

    def _lose(self, where: str, given: Mapping[str, bool]) -> None:
        self.losses.extend(cannot_express(where, given_names(given)))

    def _writable(self, value: Json, pointer: Pointer) -> Json:
        """YAML cannot hold half a character, and HoloDeck no literal `${NAME}`."""
        if isinstance(value, dict):
            return {self._writable(key, pointer): self._writable(item, (*pointer, key)) for key, item in value.items()}
        if isinstance(value, list):
            return [self._writable(item, (*pointer, index)) for index, item in enumerate(value)]
        if not isinstance(value, str):
            return value
        if VARIABLE.search(value) and not describes_a_model(pointer):
            self.losses.append(f"{pointer_text(pointer)}: '${{' will be read as a variable of the environment")
        if _HALF_CHARACTER.search(value):
            self.losses.append(f"{pointer_text(pointer)}: half a character cannot be expressed; it is replaced")
        return _HALF_CHARACTER.sub("\ufffd", value)


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


def _yaml(data: Json) -> str:
    class Dumper(yaml.SafeDumper):
        """Quotes what YAML 1.2 reads as a number and 1.1 as text, and repeats values instead of aliasing them."""

        def ignore_aliases(self, data: object) -> bool:
            return True

    def represent(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
        style = '"' if _NUMBER_LIKE.fullmatch(text) or _FOLDED.search(text) else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)

    Dumper.add_representer(str, represent)
    return yaml.dump(data, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=10_000)


def write_turn(where: str, turn: Turn, losses: list[str]) -> dict[str, Json]:
    """Everything of a turn but what scores it."""
    data: dict[str, Json] = {"input": _text(where, "input", turn.input, losses)}
    if turn.expected.output is None:
        losses.append(f"{where}: that no answer is expected cannot be expressed")
    elif turn.expected.output is not UNSET:
        data["ground_truth"] = _text(where, "ground_truth", turn.expected.output, losses)
    if turn.expected.tool_calls:
        data["expected_tools"] = [_expected_call(where, call, losses) for call in turn.expected.tool_calls]
    elif turn.expected.tool_calls is not None:
        losses.append(f"{where}: that no tool is expected cannot be expressed")
    if turn.retrieval_context:
        data["retrieval_context"] = list(turn.retrieval_context)
    files = [_file(where, attachment, losses) for attachment in turn.attachments]
    if files:
        data["files"] = files
    if len(files) > MOST_FILES:
        losses.append(f"{where}: HoloDeck takes at most {MOST_FILES} files")
    unwritten = {
        "expected keywords": turn.expected.keywords is not None,
        "expected context": turn.expected.context is not None,
    }
    losses += cannot_express(where, given_names(unwritten))
    return data | written_extensions(where, turn.extra, losses)


def _text(where: str, name: str, value: Json, losses: list[str]) -> str:
    text = show(plain(value))
    if not isinstance(value, str):
        losses.append(f"{where}: its {name} is not text; it is written as JSON text")
    elif not text.strip():
        losses.append(f"{where}: a blank {name} cannot be expressed; the file is not valid until it is filled in")
    return text


def _expected_call(where: str, call: ExpectedCall, losses: list[str]) -> Json:
    place = f"{where}: expected tool {call.name!r}"
    unwritten = {
        "that its name must match in full": not call.substring,
        "that there be no other arguments": call.arguments is not None and not call.extra_arguments,
        "its result": call.result is not UNSET,
    }
    losses += cannot_express(place, given_names(unwritten))
    if call.arguments is None and call.count == 1:
        return call.name
    data: dict[str, Json] = {"name": call.name}
    if call.arguments is not None:
        written = {name: _matcher(matcher) for name, matcher in call.arguments.items()}
        losses.extend(f"{place}: argument {name!r} cannot be expressed" for name, form in written.items() if not form)
        data["args"] = {name: form[0] for name, form in written.items() if form}
    if call.count != 1:
        data["count"] = call.count
    return data


def _matcher(matcher: Matcher) -> tuple[Json, ...]:
    """The one form of a matcher, or none."""
    match matcher:
        case Regex(pattern=pattern):
            return ({"regex": pattern},)
        case Fuzzy(value=value, ignore_punctuation=False) if value is not None and not isinstance(value, (dict, list)):
            return ({"fuzzy": plain(value)},)
        case Equals(value=value) if not isinstance(value, dict) or MATCHER_KEYS.isdisjoint(value):
            return (plain(value),)
        case _:
            return ()


def _file(where: str, attachment: Attachment, losses: list[str]) -> dict[str, Json]:
    name = attachment.path or attachment.url
    if attachment.kind not in FILE_TYPES:
        losses.append(f"{where}: file {name!r} is of no type HoloDeck knows; 'text' is written")
    data: dict[str, Json] = {
        "path": attachment.path,
        "url": attachment.url,
        "type": attachment.kind if attachment.kind in FILE_TYPES else "text",
        "description": attachment.description,
    }
    known = {key: plain(attachment.options[key]) for key in _OPTIONS if key in attachment.options}
    losses.extend(
        f"{where}: option {key!r} of file {name!r} cannot be expressed"
        for key in attachment.options
        if key not in known
    )
    return {key: value for key, value in (data | known).items() if value is not None}


_OPTIONS = ("pages", "sheet", "range", "cache")


_STANDARD_NAMES = {evaluator: metric for metric, evaluator in STANDARD.items()}
_RAG_NAMES = {evaluator: metric for metric, evaluator in RAG.items()}
_GEVAL_ARGUMENTS = ("criteria", "evaluation_steps", "evaluation_params", "strict_mode", "model")
_USUAL_THRESHOLD = 0.5


def write_metrics(where: str, specs: Sequence[EvaluatorSpec], losses: list[str]) -> list[Json]:
    """One metric per evaluator that has one."""
    metrics = [_write_metric(where, spec, losses) for spec in specs]
    return [metric for metric in metrics if metric is not None]


def _write_metric(where: str, spec: EvaluatorSpec, losses: list[str]) -> Json:
    place = f"{where}: evaluator {spec.title!r}"
    if spec.name in _STANDARD_NAMES:
        metric, said, label = _standard(place, spec, losses)
    elif spec.name in _RAG_NAMES:
        kind = _RAG_NAMES[spec.name]
        metric, said, label = {"type": "rag", "metric_type": kind}, ("model",), kind
    elif spec.name == "GEval":
        metric, said, label = {"type": "geval", "name": spec.title}, _GEVAL_ARGUMENTS, spec.title
    elif spec.name == "CodeGrader":
        metric, said, label = {"type": "code", "name": spec.title}, ("grader",), spec.title
    elif spec.name == "ExactMatch" and not spec.arguments:
        metric, said, label = {"type": "standard", "metric": "equality"}, (), spec.title
        losses.append(f"{place} is written as equality, which compares text")
    else:
        losses.append(f"{place} has no metric; it is left out")
        return None
    _note_losses(place, spec, said, label, losses)
    metric |= {name: plain(spec.arguments[name]) for name in said if name in spec.arguments}
    if spec.threshold is not None:
        metric["threshold"] = spec.threshold
    if spec.optional:
        metric["fail_on_error"] = False
    return metric


def _standard(place: str, spec: EvaluatorSpec, losses: list[str]) -> tuple[dict[str, Json], tuple[str, ...], str]:
    name = _STANDARD_NAMES[spec.name]
    metric: dict[str, Json] = {"type": "standard", "metric": name}
    if spec.timeout is not None:
        metric["timeout_ms"] = max(1, round(spec.timeout * 1000))
    if spec.path is not None:
        metric["response_path"] = spec.path
    if spec.retries and name in JUDGED:
        metric["retry_on_failure"] = min(MOST_RETRIES, spec.retries)
    if name in LEXICAL:
        if spec.gates and spec.threshold is None:
            metric["threshold"] = _USUAL_THRESHOLD
            losses.append(f"{place}: its own threshold cannot be expressed; {_USUAL_THRESHOLD} is written")
        elif not spec.gates and spec.threshold is not None:
            losses.append(f"{place}: a threshold that decides nothing cannot be expressed; it will decide")
    said = ("model", "scale", "custom_prompt") if name in JUDGED else tuple(FLAGS[name]) if name in EXACT else ()
    return metric, said, name


def _note_losses(place: str, spec: EvaluatorSpec, said: tuple[str, ...], label: str, losses: list[str]) -> None:
    implied = {"variant": "rougeL"} if spec.name == "ROUGE" else {}
    losses.extend(
        f"{place}: argument {name!r} cannot be expressed"
        for name, value in spec.arguments.items()
        if name not in said and implied.get(name) != value
    )
    lexical = spec.name in LEXICAL.values()
    unwritten = {
        "its label": label != spec.title,
        "that it decides nothing": not spec.gates and not lexical,
        "that it sees the whole case": spec.scope == "case",
        "the output it looks at": spec.output is not None,
        "where in the output it looks": spec.path is not None and spec.name not in _STANDARD_NAMES,
        "how often it is tried again": spec.retries > (MOST_RETRIES if spec.name in JUDGED.values() else 0),
        "its timeout": spec.timeout is not None and spec.name not in _STANDARD_NAMES,
    }
    losses += cannot_express(place, given_names(unwritten))
