"""Finds evaluators by name and resolves the entries of a suite into evaluators that can be called.

A name is looked up among the shipped evaluators (`_index.py`, then the shipped plugins), then among those of plugins in
other packages. A reference such as `checks.py:my_evaluator` names the user's own code.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from proctor import plugins
from proctor.base.documents import did_you_mean
from proctor.base.errors import RenamedWarning, UsageError, one_line
from proctor.base.fingerprints import code_fingerprint
from proctor.base.json_data import UNSET, fingerprint, to_json
from proctor.base.references import is_reference, locate, resolve
from proctor.base.selectors import Selector, parse_selector
from proctor.base.threads import is_async
from proctor.cases.evaluator_specs import SPEC_KEYS, target_of
from proctor.cases.suite import EvaluatorSpec, NamedData
from proctor.cases.threshold import threshold_in_force
from proctor.evaluators import shipped_evaluators
from proctor.evaluators.calling import VIEW, CallStyle, call_style, is_named_by
from proctor.evaluators.declaration import FAMILIES, Declaration, declaration_of, undecorated
from proctor.evaluators.evaluable import Evaluable, collapse
from proctor.evaluators.evaluation import InvalidScore
from proctor.evaluators.values import as_data
from proctor.judging.choosing import NO_SOURCES, JudgeChoice, JudgeSources, choose_judge, own_judge
from proctor.judging.judge import QUESTIONS_VERSION

_SHOWN_NOTICES: dict[Any, Any] = {}


@dataclass(frozen=True, slots=True, eq=False)
class ResolvedEvaluator:
    """An evaluator that is ready to be called, with everything the engine needs to know about it.

    Two are equal only if they are the same object, so they can be keys of a dictionary.
    """

    spec: EvaluatorSpec
    call: Callable[..., Any]
    title: str
    threshold: float
    """The threshold in force."""
    scope: Literal["turn", "case"]
    fingerprint: str
    asynchronous: bool
    style: CallStyle
    """What it is called with."""
    runs_inline: bool
    """Whether it runs on the event loop: only shipped evaluators do, which are quick. All others run in threads."""
    needs_judge: bool = False
    """Whether it asks a language model: its own, or the judge of the run."""
    asks_judge: bool = False
    """Whether it asks the judge of the run, which may be the rule-based one."""
    sources: JudgeSources = NO_SOURCES
    """The places that may name a judge, for other evaluators that it calls."""
    judge: JudgeChoice | None = None
    """Its judge, if it asks one."""
    selector: Selector | None = None
    """The part of the output that it scores."""

    reads_expected: bool = True
    """Whether it can look at the expected output of a case."""
    asks_model: bool = False
    """Whether it asks a model other than the judge that costs time and money; local embeddings do not."""

    @property
    def needs_model(self) -> bool:
        """Whether it asks a model that costs time and money; the rule-based judge and local embeddings do not."""
        return self.asks_model if self.judge is None else self.judge.needs_model


class OutputMissing(Exception):
    """The answer lacks the part that the evaluator scores. That is the agent's fault, so the score is 0."""


def select_output(resolved: ResolvedEvaluator, evaluable: Evaluable) -> Evaluable:
    """The evaluable with the output that the evaluator scores: all outputs, one by name, or a part of one.

    An evaluator that reads all answers of a conversation reads this part of each. An answer without it counts as empty.
    """
    name, selector = resolved.spec.output, resolved.selector
    if name is None and selector is None:
        return evaluable
    if len(evaluable.turns) < 2 or not getattr(resolved.call, "conversation", False):
        return replace(evaluable, eval_output=_select_outputs(name, selector, evaluable.eval_output))
    turns, missing = [], []
    for exchange in evaluable.turns:
        reply = exchange.reply
        try:
            outputs = _select_outputs(name, selector, reply.named_outputs)
        except (InvalidScore, OutputMissing) as error:
            missing.append(error)
            outputs = (NamedData("nothing", ""),)
        turns.append(replace(exchange, reply=replace(reply, outputs=outputs)))
    if len(missing) == len(turns):
        raise missing[-1]
    return replace(evaluable, turns=tuple(turns), eval_output=turns[-1].reply.outputs)


def _select_outputs(name: str | None, selector: Selector | None, outputs: Sequence[NamedData]) -> tuple[NamedData, ...]:
    """The output by name and path. Text that holds JSON is read as JSON if there is a path."""
    chosen = tuple(outputs) if name is None else tuple(item for item in outputs if item.name == name)[-1:]
    if not chosen:
        names = ", ".join(item.name for item in outputs)
        raise InvalidScore(f"scores the output {name!r}, which the agent did not return; it returned {names}")
    if selector is None:
        return chosen
    data = as_data(collapse(chosen))
    value = selector.find(data)
    if value is UNSET:
        if isinstance(data, str):
            raise OutputMissing(f"the answer is not JSON, so {selector.text!r} was not found in it")
        raise OutputMissing(f"{selector.text!r} was not found in the answer")
    return (NamedData(selector.text, value),)


def resolve_evaluator(
    spec: EvaluatorSpec,
    base: Path | None = None,
    sources: JudgeSources = NO_SOURCES,
    *,
    suite_threshold: float | None = None,
) -> ResolvedEvaluator:
    """The evaluator that `spec` names, with its threshold and, if it asks one, its judge.

    References start from the folder `base`. `suite_threshold` comes from the suite's criteria. Raises `UsageError` if
    there is no such evaluator or its arguments are wrong, and `InvalidJudge` if its judge is not valid.
    """
    if (target := target_of(spec)) is not None:
        return resolve_callable(spec, _instantiate(spec, target, base), sources, suite_threshold=suite_threshold)
    if spec.fingerprint and not is_reference(spec.name):
        raise UsageError(
            f"evaluator {spec.title!r} was defined in a notebook or inside other code; move it to a file "
            f"('checks.py:{_identifier(spec)}'), or use run.rescore(evaluators=[{_identifier(spec)}])"
        )
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
    """A callable as a resolved evaluator, with the threshold, scope and output that `spec` sets.

    `sources` are the places that may name its judge. `suite_threshold` comes from the suite's criteria. Raises
    `InvalidJudge` if its judge is not valid.
    """
    declaration, call = declaration_of(call), undecorated(call)
    spec = _with_declared(spec, declaration)
    is_shipped = spec.shipped_name in shipped_evaluators()
    is_judged = bool(getattr(call, "asks_judge", False))
    judge = choose_judge(sources, own_judge(call)) if is_judged else None
    # Another judge, or other questions, may give other scores.
    judge_version = [] if judge is None else [judge.identity, QUESTIONS_VERSION]
    version = _version(call, declaration, is_shipped)
    return ResolvedEvaluator(
        spec=spec,
        call=call,
        title=spec.title,
        threshold=threshold_in_force(declaration.threshold, entry=spec.threshold, suite=suite_threshold),
        scope=spec.scope or _scope(call, declaration),
        fingerprint=fingerprint(
            "python" if spec.fingerprint else spec.name,
            version,
            to_json(spec.arguments),
            *_selection(spec),
            *judge_version,
        ),
        asynchronous=is_async(call),
        style=_style_of_shipped(_class_of(call)) if is_shipped else call_style(call),
        reads_expected=_reads_expected(call, declaration, is_shipped),
        runs_inline=is_shipped and not is_async(call) and not spec.retries,
        needs_judge=bool(getattr(call, "needs_judge", False)),
        asks_model=bool(getattr(call, "needs_model", getattr(call, "needs_judge", False))),
        asks_judge=is_judged,
        sources=sources,
        judge=judge,
        selector=None if spec.output_path is None else _selector(spec.output_path),
    )


def _identifier(spec: EvaluatorSpec) -> str:
    """A name for the code of an entry: that of its function, or another one for a lambda."""
    return spec.title if spec.title.isidentifier() else "check"


def _class_of(call: Any) -> Any:
    return type(call)


@functools.cache
def _style_of_shipped(kind: Any) -> CallStyle:
    """Shipped evaluators take an `Evaluable`; reading the signature of each instance would take longer than a score."""
    return CallStyle(takes_trace="trace" in inspect.signature(kind.__call__).parameters)


def _reads_expected(call: Any, declaration: Declaration, is_shipped: bool) -> bool:
    """Whether an evaluator can look at the expected output: shipped ones declare it, functions name it."""
    if not is_shipped:
        return call_style(call).reads_expected
    return "reference" in declaration.needs or declaration.family not in _WITHOUT_REFERENCE


_WITHOUT_REFERENCE = frozenset(FAMILIES) - {"reference", "rubric"}
"""Families whose evaluators look at an expected output only if they need one."""


def _with_declared(spec: EvaluatorSpec, declaration: Declaration) -> EvaluatorSpec:
    """The entry of a suite, completed with the settings that the evaluator declares itself."""
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
    """Whether `spec` names the user's own code. Checks that the code exists without loading it."""
    if target_of(spec) is not None:
        return True
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
    """The settings that select what the evaluator scores."""
    selection: list[Any] = [spec.output, spec.scope]
    return selection if spec.output_path is None else [*selection, spec.output_path]


def shipped_class(name: str) -> Any:
    """The class of a shipped evaluator."""
    return plugins.load(shipped_evaluators()[name])


def shipped_declarations() -> Iterator[Declaration]:
    """The declarations of all shipped evaluators, by family, each once."""
    seen: set[str] = set()
    for name in shipped_evaluators():
        declaration = declaration_of(shipped_class(name))
        if declaration.name not in seen:
            seen.add(declaration.name)
            yield declaration


def installed_declarations() -> Iterator[tuple[str, str, Declaration | UsageError]]:
    """Evaluators of other packages: the plugin, the name in files, and the declaration or why it cannot be loaded."""
    for plugin in plugins.installed_plugins():
        for name, place in plugin.evaluators.items():
            yield plugin.name, name, _load_declaration(name, place)


def _load_declaration(name: str, place: str) -> Declaration | UsageError:
    try:
        return declaration_of(plugins.load(place))
    except Exception as error:
        return UsageError(f"cannot load the evaluator {name!r}: {one_line(error)}")


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
    close = similar_evaluators(name)
    hint = f"; similar: {', '.join(close)}" if close else "; see `proctor list evaluators`"
    raise UsageError(f"no evaluator is called {name!r}{hint}")


def similar_evaluators(name: str, limit: int = 4) -> list[str]:
    """Shipped evaluators that `name` may mean: by what they do, then by how they are spelled.

    `MaxToolCalls` is spelled like `MaxTokens`, but the words of the name describe `MaxSteps`, a limit on tool calls.
    """
    known = shipped_evaluators()
    words = _words(name)
    matches = {
        item.name: len(words & _words(f"{item.name} {item.summary}")) + len(words & _words(item.name))
        for item in shipped_declarations()
    }
    by_words = sorted((item for item in matches if matches[item] > 1), key=lambda item: -matches[item])
    lower = {known_name.lower(): known_name for known_name in known}
    by_spelling = [lower[match] for match in difflib.get_close_matches(name.lower(), lower, n=limit, cutoff=0.5)]
    by_spelling += [known_name for known_name in known if name and name.lower() in known_name.lower()]
    return list(dict.fromkeys([*by_words[:2], *by_spelling]))[:limit]


def _words(text: str) -> set[str]:
    """The words of a name or sentence, in lower case and without a plural `s`."""
    found = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", text)
    return {word.lower().removesuffix("s") for word in found} - {"the", "of", "a", "an", "metric", "evaluator"}


def _find(name: str, base: Path | None) -> Any:
    """The class, function or object that a name or reference means; `None` if there is none."""
    if name in shipped_evaluators():
        return shipped_class(name)
    if is_reference(name):
        return resolve(name, base)
    if _alias(name) is not None:
        return None
    places = (plugin.evaluators[name] for plugin in plugins.installed_plugins() if name in plugin.evaluators)
    return next(map(plugins.load, places), None)


def _alias(name: str) -> str | None:
    """The shipped evaluator that another tool calls by this name, or DeepEval with `Metric` at the end."""
    known = shipped_evaluators()
    if (bare := name.removesuffix("Metric")) in known:
        return bare
    own = plugins.evaluator_alias(name)
    return own if own in known else None


def _by_alias(name: str) -> str:
    """The shipped evaluator that another tool calls by this name; raises `UsageError` if there is none."""
    own = _alias(name)
    if own is None:
        likely = did_you_mean(name, shipped_evaluators())
        if not likely and (similar := similar_evaluators(name, limit=2)):
            likely = f"; similar: {', '.join(similar)}; name your own as file.py:name"
        likely = likely or "; use a shipped one, or name your own as file.py:name"
        raise UsageError(f"no evaluator is called {name!r}{likely}")
    return own


def _instantiate(spec: EvaluatorSpec, target: Any, base: Path | None) -> Callable[..., Any]:
    """Create an instance of a class, call a factory, or bind arguments to a function. Instances stay as they are."""
    arguments = _with_new_names(spec, target)
    if "client" in arguments and getattr(target, "__module__", "").startswith("proctor."):
        raise UsageError(f"{spec.name}: client is a Python object and cannot be set in a file")
    try:
        if (adapter := _adapter_of(target)) is not None:
            instance = adapter(target, **arguments)
        elif isinstance(target, type):
            instance = target(**arguments, **_base_folder(target, base))
        elif inspect.isfunction(target) and _is_factory(target, arguments):
            instance = target(**arguments)
        elif arguments:
            inspect.signature(target).bind_partial(None, **arguments)
            instance = functools.partial(target, **arguments)
        else:
            instance = target
    except UsageError:
        raise
    except Exception as error:
        if isinstance(target, type) and (missing := _missing_parameters(target, arguments)):
            example = ", ".join(f"{name}: …" for name in missing)
            message = f"{spec.name} needs {' and '.join(missing)}; write {{{spec.name}: {{{example}}}}}"
            raise UsageError(message) from None
        if target_of(spec) is not None and inspect.isfunction(target) and _is_factory(target, arguments):
            raise UsageError(_no_parameters(spec)) from error
        unknown = _unknown_parameter(target, arguments)
        raise UsageError(
            f"{spec.name} {unknown}" if unknown else f"{spec.name}: {_message(error, arguments)}"
        ) from error
    if not callable(instance):
        if inspect.isfunction(target):
            raise UsageError(_no_parameters(spec))
        raise UsageError(f"{spec.name} is a {type(instance).__name__}, which cannot be called")
    return instance  # type: ignore[no-any-return]


def _adapter_of(target: Any) -> Any:
    """What makes an evaluator of a scorer of another library, an instance or a class; `None` for anything else."""
    kind = target if isinstance(target, type) else type(target)
    package = kind.__module__.partition(".")[0]
    if package in ("proctor", "builtins") or not callable(getattr(kind, "eval_async", None)):
        return None
    place = next((plugin.scorers[package] for plugin in plugins.plugins() if package in plugin.scorers), None)
    return None if place is None else plugins.load(place)


def _no_parameters(spec: EvaluatorSpec) -> str:
    """What to say of a function without required parameters that does not return an evaluator."""
    return (
        f"evaluator {spec.title!r} names no parameter, so it gets no answer to score; take one Evaluable, or any of: "
        f"{', '.join(VIEW)} (a decorator keeps the parameters with functools.wraps)"
    )


def _with_new_names(spec: EvaluatorSpec, target: Any) -> dict[str, Any]:
    """The arguments of an entry. Parameters that were renamed still work, with a notice."""
    arguments = dict(spec.arguments)
    renamed: Mapping[str, str] = getattr(target, "renamed_parameters", {})
    for old in renamed.keys() & arguments.keys():
        notice = f"{spec.name}: the parameter {old!r} is now called {renamed[old]!r}"
        warnings.warn_explicit(notice, RenamedWarning, "proctor", 1, registry=_SHOWN_NOTICES)
        arguments[renamed[old]] = arguments.pop(old)
    return arguments


def _unknown_parameter(target: Any, arguments: Mapping[str, Any]) -> str:
    """What to say of an argument that is not a parameter; empty if all are."""
    try:
        parameters = inspect.signature(target).parameters.values()
    except (TypeError, ValueError):
        return ""
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return ""
    names = [p.name for p in parameters]
    unknown = next((name for name in arguments if name not in names), None)
    return "" if unknown is None else f"has no parameter {unknown!r}{did_you_mean(unknown, (*names, *SPEC_KEYS))}"


def _message(error: Exception, arguments: Mapping[str, Any]) -> str:
    """What is wrong with the arguments, which are added if the error names none of them."""
    text = str(error) if isinstance(error, ValueError) and str(error) else one_line(error)
    if not arguments or any(name in text for name in arguments):
        return text
    return f"{text} ({', '.join(f'{name}={value!r}' for name, value in arguments.items())})"


def _base_folder(target: type, base: Path | None) -> dict[str, Any]:
    """The suite's folder, for a class with a `base` parameter: its own references start from there."""
    try:
        return {"base": base} if "base" in inspect.signature(target).parameters else {}
    except (TypeError, ValueError):
        return {}


def _scope(call: Any, declaration: Declaration) -> Literal["turn", "case"]:
    """Its scope. That of an instance may depend on its arguments."""
    return "case" if "case" in (getattr(call, "scope", None), declaration.scope) else "turn"


def _is_factory(function: Callable[..., Any], arguments: dict[str, Any]) -> bool:
    """Whether a function returns an evaluator: it needs no more arguments, and none that an evaluator gets."""
    parameters = [p for p in inspect.signature(function).parameters.values() if p.name not in arguments]
    return not _missing_parameters(function, arguments) and not is_named_by(parameters)


def _missing_parameters(function: Callable[..., Any], arguments: dict[str, Any]) -> list[str]:
    """The required parameters without a value. A function without any is a factory that returns an evaluator."""
    return [
        p.name
        for p in inspect.signature(function).parameters.values()
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.name not in arguments
    ]


def _version(call: Any, declaration: Declaration, is_shipped: bool) -> str:
    """Its version. That of an instance may depend on its arguments."""
    version = getattr(call, "version", None)
    if isinstance(version, (str, int)):
        return str(version)
    if declaration.version is not None:
        return declaration.version
    if is_shipped:
        return "1"
    return code_fingerprint(call)


def with_unique_title(resolved: ResolvedEvaluator, taken: set[str]) -> ResolvedEvaluator:
    """The evaluator with a title that is not in `taken`: scores are summed up by title."""
    title, number = resolved.title, 2
    while title in taken:
        title, number = f"{resolved.title} #{number}", number + 1
    return resolved if title == resolved.title else replace(resolved, title=title)
