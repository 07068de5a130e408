"""Finds evaluators by name and builds them from what a file says.

A name is looked for among the shipped evaluators (`_index.py`, then the shipped plugins), then among those that plugins
of other packages bring. A reference such as `checks.py:my_evaluator` names the user's own.
"""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Literal

from proctor import plugins
from proctor.base.documents import did_you_mean
from proctor.base.errors import UsageError, one_line
from proctor.base.fingerprints import source_fingerprint
from proctor.base.json_data import UNSET, fingerprint, to_json
from proctor.base.references import is_reference, locate, resolve
from proctor.base.selectors import Selector, parse_selector
from proctor.base.threads import is_async
from proctor.cases.suite import EvaluatorSpec, NamedData
from proctor.cases.threshold import threshold_in_force
from proctor.evaluators import shipped_evaluators
from proctor.evaluators.declaration import Declaration, declaration_of, undecorated
from proctor.evaluators.evaluable import Evaluable, collapse
from proctor.evaluators.evaluation import InvalidScore, takes_trace
from proctor.evaluators.values import as_data
from proctor.judging.choosing import NO_SOURCES, JudgeChoice, JudgeSources, choose_judge, own_judge
from proctor.judging.judge import QUESTIONS_VERSION


@dataclass(frozen=True, slots=True, eq=False)
class ResolvedEvaluator:
    """An evaluator ready to be called, with everything the engine needs to know about it.

    Two of them are equal only if they are the same object, so that they serve as keys.
    """

    spec: EvaluatorSpec
    call: Callable[..., Any]
    title: str
    threshold: float
    """The threshold in force."""
    scope: Literal["turn", "case"]
    fingerprint: str
    asynchronous: bool
    takes_trace: bool
    runs_inline: bool
    """Shipped evaluators are quick and trusted: they run on the event loop, everything else apart from it."""
    needs_judge: bool = False
    """Asks a language model, its own or the judge of the run."""
    asks_judge: bool = False
    """Asks the judge of the run; the rule-based one needs no model."""
    sources: JudgeSources = NO_SOURCES
    """Where a judge may be named, for evaluators that it calls in turn."""
    judge: JudgeChoice | None = None
    """Who judges, if it asks a judge."""
    selector: Selector | None = None
    """Where in the output it looks."""

    @property
    def needs_model(self) -> bool:
        """Whether it asks a language model; the rule-based judge is not one."""
        return self.needs_judge if self.judge is None else self.judge.needs_model


class OutputMissing(Exception):
    """The answer lacks what an evaluator is to look at, which is a verdict on the answer: it scores nothing."""


def select_output(bound: ResolvedEvaluator, evaluable: Evaluable) -> Evaluable:
    """What the evaluator looks at: all outputs, or the one its file names, or what stands at a place in it.

    One that reads all answers of a conversation looks there in each of them; an answer that lacks it says nothing.
    """
    name, selector = bound.spec.output, bound.selector
    if name is None and selector is None:
        return evaluable
    if len(evaluable.turns) < 2 or not getattr(bound.call, "conversation", False):
        return replace(evaluable, eval_output=_selected(name, selector, evaluable.eval_output))
    turns, missing = [], []
    for exchange in evaluable.turns:
        reply = exchange.reply
        try:
            found = _selected(name, selector, reply.named_outputs)
        except (InvalidScore, OutputMissing) as error:
            missing.append(error)
            found = (NamedData("nothing", ""),)
        turns.append(replace(exchange, reply=replace(reply, outputs=found)))
    if len(missing) == len(turns):
        raise missing[-1]
    return replace(evaluable, turns=tuple(turns), eval_output=turns[-1].reply.outputs)


def _selected(name: str | None, selector: Selector | None, outputs: Sequence[NamedData]) -> tuple[NamedData, ...]:
    """Text that holds JSON counts as that where a place in it is looked at."""
    chosen = tuple(outputs) if name is None else tuple(item for item in outputs if item.name == name)[-1:]
    if not chosen:
        names = ", ".join(item.name for item in outputs)
        raise InvalidScore(f"looks at the output {name!r}, which the agent did not give; it gave {names}")
    if selector is None:
        return chosen
    found = selector.find(as_data(collapse(chosen)))
    if found is UNSET:
        raise OutputMissing(f"the answer has nothing at {selector.text}")
    return (NamedData(selector.text, found),)


def resolve_evaluator(
    spec: EvaluatorSpec,
    base: Path | None = None,
    sources: JudgeSources = NO_SOURCES,
    *,
    suite_threshold: float | None = None,
) -> ResolvedEvaluator:
    """The evaluator that `spec` names, with its threshold and, if it asks one, its judge.

    References start from the folder `base`; `suite_threshold` is the one of the suite's criteria. Raises `UsageError`
    when there is none or its arguments do not fit, `InvalidJudge` when its judge is not valid.
    """
    target = _find(spec.name, base)
    if target is None:
        spec = replace(spec, name=_by_alias(spec.name), label=spec.title)
        target = shipped_class(spec.name)
    return resolve_callable(spec, _instantiate(spec, target, base), sources, suite_threshold=suite_threshold)


def resolve_callable(
    spec: EvaluatorSpec,
    call: Callable[..., Any],
    sources: JudgeSources = NO_SOURCES,
    *,
    suite_threshold: float | None = None,
) -> ResolvedEvaluator:
    """An evaluator that is there already, with what a file says about its threshold, its scope and what it looks at.

    `sources` are the places that may name its judge, `suite_threshold` is the one of the suite's criteria. Raises
    `InvalidJudge` when its judge is not valid.
    """
    declaration, call = declaration_of(call), undecorated(call)
    spec = _with_declared(spec, declaration)
    is_shipped = spec.name in shipped_evaluators()
    is_judged = bool(getattr(call, "asks_judge", False))
    judge = choose_judge(sources, own_judge(call)) if is_judged else None
    # Another judge, or another question to it, may give other scores.
    asked = [] if judge is None else [judge.identity, QUESTIONS_VERSION]
    version = _version(call, declaration, is_shipped)
    return ResolvedEvaluator(
        spec=spec,
        call=call,
        title=spec.title,
        threshold=threshold_in_force(declaration.threshold, entry=spec.threshold, suite=suite_threshold),
        scope=spec.scope or _scope(call, declaration),
        fingerprint=fingerprint(spec.name, version, to_json(spec.arguments), *_selection(spec), *asked),
        asynchronous=is_async(call),
        takes_trace=takes_trace(type(call).__call__ if is_shipped and is_dataclass(call) else call),
        runs_inline=is_shipped and not is_async(call) and not spec.retries,
        needs_judge=bool(getattr(call, "needs_judge", False)),
        asks_judge=is_judged,
        sources=sources,
        judge=judge,
        selector=None if spec.output_path is None else _selector(spec.output_path),
    )


def _with_declared(spec: EvaluatorSpec, declaration: Declaration) -> EvaluatorSpec:
    """The entry of a suite, completed by what the evaluator says itself about how its score is used."""
    return replace(
        spec,
        label=spec.label or declaration.title,
        report_only=spec.report_only or declaration.report_only,
        output=spec.output or declaration.output,
        output_path=spec.output_path or declaration.output_path,
        timeout=spec.timeout or declaration.timeout,
        retries=spec.retries or declaration.retries,
        optional=spec.optional or declaration.optional,
    )


def is_user_code(spec: EvaluatorSpec, base: Path | None = None) -> bool:
    """Whether `spec` names code of the user's; checks that the code is there, and loads none."""
    if is_reference(spec.name):
        reference = spec.name
    else:
        reference_in = (
            getattr(shipped_class(spec.name), "reference_in", None) if spec.name in shipped_evaluators() else None
        )
        reference = "" if reference_in is None else reference_in(spec.arguments)
    if is_reference(reference):
        locate(reference, base)
    return is_reference(reference)


def _selector(path: str) -> Selector:
    return parse_selector(path)


def _selection(spec: EvaluatorSpec) -> list[Any]:
    """What of an answer the evaluator sees."""
    selection: list[Any] = [spec.output, spec.scope]
    return selection if spec.output_path is None else [*selection, spec.output_path]


def shipped_class(name: str) -> Any:
    """The class behind a shipped name."""
    return plugins.load(shipped_evaluators()[name])


def shipped_declarations() -> Iterator[Declaration]:
    """The declaration of every shipped evaluator, family by family, each once."""
    seen: set[str] = set()
    for name in shipped_evaluators():
        declaration = declaration_of(shipped_class(name))
        if declaration.name not in seen:
            seen.add(declaration.name)
            yield declaration


def installed_declarations() -> Iterator[tuple[str, str, Declaration | UsageError]]:
    """Evaluators of other packages: who brings it, its name in files, and its declaration or why there is none."""
    for plugin in plugins.installed_plugins():
        for name, place in plugin.evaluators.items():
            yield plugin.name, name, _load_declaration(name, place)


def _load_declaration(name: str, place: str) -> Declaration | UsageError:
    try:
        return declaration_of(plugins.load(place))
    except Exception as error:
        return UsageError(f"the evaluator {name!r} cannot be loaded: {one_line(error)}")


def find_declaration(name: str) -> Declaration:
    """The declaration of the evaluator that a file calls `name`; upper and lower case do not matter.

    Raises `UsageError` with the nearest names if there is none.
    """
    known = shipped_evaluators()
    bare = name.lower().removesuffix("metric")
    own = next((shipped_name for shipped_name in known if shipped_name.lower() in (name.lower(), bare)), None)
    if own is None and not is_reference(name) and (target := _find(name, None)) is not None:
        return declaration_of(target)
    own = own or _alias(name)
    if own is not None:
        return declaration_of(shipped_class(own))
    lower = {known_name.lower(): known_name for known_name in known}
    close = [lower[found] for found in difflib.get_close_matches(name.lower(), lower, n=4, cutoff=0.5)]
    close += [known_name for known_name in known if name and name.lower() in known_name.lower()][:4]
    hint = f"; near to it: {', '.join(dict.fromkeys(close))}" if close else "; `proctor list evaluators` lists all"
    raise UsageError(f"no evaluator is called {name!r}{hint}")


def _find(name: str, base: Path | None) -> Any:
    """What is registered or referred to under a name; `None` where nothing is."""
    if name in shipped_evaluators():
        return shipped_class(name)
    if is_reference(name):
        return resolve(name, base)
    if _alias(name) is not None:
        return None
    places = (plugin.evaluators[name] for plugin in plugins.installed_plugins() if name in plugin.evaluators)
    return next(map(plugins.load, places), None)


def _alias(name: str) -> str | None:
    """The shipped evaluator that a tool has under this name, or that DeepEval has under it with `Metric` added."""
    known = shipped_evaluators()
    if (bare := name.removesuffix("Metric")) in known:
        return bare
    own = plugins.evaluator_alias(name)
    return own if own in known else None


def _by_alias(name: str) -> str:
    """The shipped evaluator that another tool has under this name; raises `UsageError` if none does."""
    own = _alias(name)
    if own is None:
        likely = did_you_mean(name, shipped_evaluators()) or "; name a shipped one, or your own as file.py:name"
        raise UsageError(f"no evaluator is called {name!r}{likely}")
    return own


def _instantiate(spec: EvaluatorSpec, target: Any, base: Path | None) -> Callable[..., Any]:
    """Classes are made, factories called, functions given their arguments as defaults; instances stay as they are."""
    arguments = dict(spec.arguments)
    if "client" in arguments and getattr(target, "__module__", "").startswith("proctor."):
        raise UsageError(f"evaluator {spec.name!r}: a client is an object, and can be given from Python alone")
    try:
        if isinstance(target, type):
            made = target(**arguments, **_base_folder(target, base))
        elif inspect.isfunction(target) and not _missing_parameters(target, arguments):
            made = target(**arguments)
        elif arguments:
            inspect.signature(target).bind_partial(None, **arguments)
            made = functools.partial(target, **arguments)
        else:
            made = target
    except UsageError:
        raise
    except Exception as error:
        if isinstance(target, type) and (missing := _missing_parameters(target, arguments)):
            example = ", ".join(f"{name}: …" for name in missing)
            message = f"evaluator {spec.name!r} needs {' and '.join(missing)}; write {{{spec.name}: {{{example}}}}}"
            raise UsageError(message) from None
        given = ", ".join(f"{key}={value!r}" for key, value in arguments.items()) or "no arguments"
        raise UsageError(f"evaluator {spec.name!r} does not take {given}: {one_line(error)}") from error
    if not callable(made):
        raise UsageError(f"evaluator {spec.name!r} is a {type(made).__name__}, which cannot be called")
    return made  # type: ignore[no-any-return]


def _base_folder(target: type, base: Path | None) -> dict[str, Any]:
    """A class with a `base` parameter is told the suite's folder, from which its own references start."""
    try:
        return {"base": base} if "base" in inspect.signature(target).parameters else {}
    except (TypeError, ValueError):
        return {}


def _scope(call: Any, declaration: Declaration) -> Literal["turn", "case"]:
    """An instance may have a scope that depends on its arguments."""
    return "case" if "case" in (getattr(call, "scope", None), declaration.scope) else "turn"


def _missing_parameters(function: Callable[..., Any], given: dict[str, Any]) -> list[str]:
    """What must still be passed: where there is something, it is an evaluator, else a factory that makes one."""
    return [
        p.name
        for p in inspect.signature(function).parameters.values()
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.name not in given
    ]


def _version(call: Any, declaration: Declaration, is_shipped: bool) -> str:
    """An instance may have a version that depends on its arguments."""
    version = getattr(call, "version", None)
    if isinstance(version, (str, int)):
        return str(version)
    if declaration.version is not None:
        return declaration.version
    if is_shipped:
        return "1"
    return (
        fingerprint(source_fingerprint(call), _configuration(call)) if is_dataclass(call) else source_fingerprint(call)
    )


def _configuration(call: Any) -> dict[str, Any]:
    """The fields of an instance that a user's file made; objects that are no plain data count by their type."""
    values = {field.name: getattr(call, field.name) for field in fields(call)}
    simple = (str, int, float, bool, type(None), list, tuple, dict)
    return {name: to_json(v) if isinstance(v, simple) else type(v).__qualname__ for name, v in values.items()}


def with_unique_title(bound: ResolvedEvaluator, taken: set[str]) -> ResolvedEvaluator:
    """Two evaluators of one list have two names: scores are summed up by name."""
    title, number = bound.title, 2
    while title in taken:
        title, number = f"{bound.title} #{number}", number + 1
    return bound if title == bound.title else replace(bound, title=title)
