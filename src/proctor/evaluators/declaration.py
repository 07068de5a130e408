"""The decorator `evaluator`, and the declaration that it puts on a class or function.

A named evaluator declares itself once, above its class:

    @evaluator(family="text", needs="keywords", threshold=1.0, example={"all": ["sorry", "refund"]})
    @dataclass(frozen=True)
    class Contains:
        \"\"\"The answer contains any (or all) of the keywords.

        The rest of the docstring says how it scores. It goes into the evaluator reference.
        \"\"\"

`proctor list evaluators`, the schema of suites, the evaluator reference and the names that `proctor` exports are
generated from the declarations; see `index.py`. The same decorator sets how the score of any function is used:

    @evaluator(threshold=0.8, report_only=True)
    def brevity(evaluable): ...

A callable without a declaration can be an evaluator too: `declaration_of` reads its attributes.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from proctor.base.documents import did_you_mean
from proctor.base.json_data import Json, to_json
from proctor.base.threads import is_async
from proctor.cases.evaluator_specs import SPEC_KEYS, read_evaluators, spec_of, spec_of_code
from proctor.cases.suite import EvaluatorSpec
from proctor.cases.threshold import DEFAULT_THRESHOLD

Scope = Literal["turn", "case"]
JudgeUse = Literal["none", "rules or model", "model", "embeddings"]
Need = Literal[
    "reference",
    "keywords",
    "tools",
    "tool calls",
    "passages",
    "question",
    "rubrics",
    "final state",
    "expected state",
    "scenario",
    "role",
    "grounds",
]
"""What a case or an answer must have. Without it the evaluator is skipped.

`tools` are the expected calls, `tool calls` the actual ones.
"""

FAMILIES = {
    "text": "Text",
    "data": "Numbers, JSON and lists",
    "tools": "Tool calls",
    "limits": "Time, tokens, money and steps",
    "passages": "Answers and passages",
    "reference": "Answers and the expected output",
    "rubric": "Criteria in words",
    "agent": "Agents and conversations",
    "safety": "Harm",
}
"""The families of shipped evaluators and their titles, in the order of lists."""

HIDDEN_PARAMETERS = frozenset({"base", "client", "pairwise_scorer"})
"""Parameters that files cannot set: Proctor sets them, or only Python can."""

T = TypeVar("T", bound=Callable[..., Any])

if TYPE_CHECKING:

    @dataclass(frozen=True, kw_only=True)
    class ScoreSettings:
        """How a score is used, as keyword arguments of every shipped evaluator. `evaluator` explains them."""

        threshold: float | None = None
        name: str | None = None
        report_only: bool = False
        scope: Scope | None = None
        output: str | None = None
        output_path: str | None = None
        timeout: float | None = None
        retries: int = 0
        optional: bool = False
else:

    class ScoreSettings:
        """What type checkers see as arguments of evaluators. `_accept_settings` takes them from the call, since they
        belong to the entry in a list of evaluators and not to the evaluator."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument of an evaluator."""

    name: str
    required: bool
    default: Json = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """The properties of an evaluator. The parameters are explained at `evaluator`."""

    target: Any = field(repr=False)
    """The class or function."""
    name: str
    family: str = ""
    needs: tuple[Need, ...] = ()
    judge: JudgeUse = "none"
    threshold: float = DEFAULT_THRESHOLD
    scope: str = "turn"
    """`turn`, `case`, or `turn or case` if that depends on its arguments."""
    example: Mapping[str, Json] = field(default_factory=dict)
    version: str | None = None
    also: tuple[str, ...] = ()
    variant_of: str = ""
    title: str | None = None
    report_only: bool = False
    output: str | None = None
    output_path: str | None = None
    timeout: float | None = None
    retries: int = 0
    optional: bool = False

    @property
    def summary(self) -> str:
        """What it does, in one line: the first line of its docstring."""
        return _docstring_parts(self.target)[0]

    @property
    def score(self) -> str:
        """How it scores: the rest of its docstring."""
        return _docstring_parts(self.target)[1]

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters that a file may set."""
        try:
            parameters = inspect.signature(self.target).parameters.values()
        except (TypeError, ValueError):
            return ()
        # The first parameter of a function is what it evaluates.
        evaluable = () if isinstance(self.target, type) else tuple(parameters)[:1]
        members = fields(self.target) if is_dataclass(self.target) else ()
        defaults = {item.name: item.default_factory() for item in members if item.default_factory is not MISSING}
        return tuple(
            Parameter(
                p.name, p.default is p.empty, to_json(defaults.get(p.name, None if p.default is p.empty else p.default))
            )
            for p in parameters
            if p.name not in HIDDEN_PARAMETERS and p not in evaluable
        )

    @property
    def entry(self) -> Json:
        """The example as an entry of `evaluators` in a suite."""
        return {self.name: dict(self.example)} if self.example else self.name


@overload
def evaluator(
    target: str | Mapping[str, Mapping[str, Json]] | EvaluatorSpec,
    /,
    *,
    threshold: float | None = None,
    name: str | None = None,
    report_only: bool | None = None,
    scope: Scope | None = None,
    output: str | None = None,
    output_path: str | None = None,
    timeout: float | None = None,
    retries: int | None = None,
    optional: bool | None = None,
) -> EvaluatorSpec: ...
@overload
def evaluator(
    target: T,
    /,
    *,
    family: str | None = None,
    needs: Need | tuple[Need, ...] | None = None,
    judge: JudgeUse | None = None,
    example: Mapping[str, Json] | None = None,
    version: str | int | None = None,
    also: tuple[str, ...] | None = None,
    variant_of: str | None = None,
    threshold: float | None = None,
    name: str | None = None,
    report_only: bool | None = None,
    scope: Scope | None = None,
    output: str | None = None,
    output_path: str | None = None,
    timeout: float | None = None,
    retries: int | None = None,
    optional: bool | None = None,
) -> T: ...
@overload
def evaluator(
    *,
    family: str | None = None,
    needs: Need | tuple[Need, ...] | None = None,
    judge: JudgeUse | None = None,
    example: Mapping[str, Json] | None = None,
    version: str | int | None = None,
    also: tuple[str, ...] | None = None,
    variant_of: str | None = None,
    threshold: float | None = None,
    name: str | None = None,
    report_only: bool | None = None,
    scope: Scope | None = None,
    output: str | None = None,
    output_path: str | None = None,
    timeout: float | None = None,
    retries: int | None = None,
    optional: bool | None = None,
) -> Callable[[T], T]: ...
def evaluator(
    target: Any = None,
    /,
    *,
    family: str | None = None,
    needs: Need | tuple[Need, ...] | None = None,
    judge: JudgeUse | None = None,
    example: Mapping[str, Json] | None = None,
    version: str | int | None = None,
    also: tuple[str, ...] | None = None,
    variant_of: str | None = None,
    threshold: float | None = None,
    name: str | None = None,
    report_only: bool | None = None,
    scope: Scope | None = None,
    output: str | None = None,
    output_path: str | None = None,
    timeout: float | None = None,
    retries: int | None = None,
    optional: bool | None = None,
) -> Any:
    """Declare an evaluator, or set how the score of any callable is used.

    As a decorator it returns the class or function itself. Called with an evaluator, `evaluator(polite,
    report_only=True)`, it returns a copy, so that one evaluator can be used in two ways. Settings in a suite override
    these, and a parameter that is `None` changes nothing.

    To declare a named evaluator:

    - `family`: the group it is listed in, such as `text`.
    - `needs`: what a case or an answer must have. Without it, the evaluator is skipped.
    - `judge`: whether it asks a judge; `rules or model` if the rule-based judge can answer.
    - `example`: arguments that show what it is for.
    - `version`: part of its fingerprint; raise it when scores change.
    - `also`: its other names.
    - `variant_of`: the evaluator that this one is a special case of. It is listed only with `--all`.

    To set how the score is used, with the same names as in a suite:

    - `threshold`: the lowest score that passes, from 0 to 1.
    - `name`: what reports call it.
    - `report_only`: whether its score is reported without counting.
    - `scope`: `turn` to score each turn, `case` to score the whole conversation once.
    - `output`: the named output that it scores, if the agent returns several.
    - `output_path`: the part of a structured output that it scores, such as `order.items[0].price`.
    - `timeout`: the time limit of one call, in seconds.
    - `retries`: how often a call that failed is repeated.
    - `optional`: whether it is skipped if it raises an error, instead of making the case an error.
    """
    settings: dict[str, Any] = {
        "family": family,
        "needs": needs,
        "judge": judge,
        "example": example,
        "version": version,
        "also": also,
        "variant_of": variant_of,
        "threshold": threshold,
        "name": name,
        "report_only": report_only,
        "scope": scope,
        "output": output,
        "output_path": output_path,
        "timeout": timeout,
        "retries": retries,
        "optional": optional,
    }
    if target is None:
        return functools.partial(_declare, settings)
    if isinstance(target, (str, Mapping, EvaluatorSpec)):
        values = {key: value for key, value in settings.items() if value is not None}
        _check(values)
        [spec] = read_evaluators([target])
        return replace(spec, **_as_spec_fields(values))
    if not callable(target):
        raise TypeError(f"evaluator() takes a function, a class, another callable or a name, not {target!r}")
    return _declare(settings, _copy(target))


def declaration_of(target: Any) -> Declaration:
    """The declaration of a class, function or instance.

    A callable without one gets it from its attributes: `default_threshold`, `scope`, `version`, `needs_judge`.
    """
    while isinstance(target, functools.partial):
        target = target.func
    for place in (target, type(target)):
        # Only its own: a subclass of a declared evaluator is another evaluator.
        declared = vars(place).get("declaration") if hasattr(place, "__dict__") else None
        if isinstance(declared, Declaration):
            return declared
    scope, version = getattr(target, "scope", "turn"), getattr(target, "version", None)
    return Declaration(
        target=target,
        name=str(getattr(target, "__name__", type(target).__name__)),
        judge="model" if getattr(target, "needs_judge", False) is True else "none",
        threshold=float(getattr(target, "default_threshold", DEFAULT_THRESHOLD)),
        scope="turn or case" if isinstance(scope, property) else "case" if scope == "case" else "turn",
        version=str(version) if isinstance(version, (str, int)) else None,
    )


def undecorated(target: Any) -> Any:
    """The evaluator inside a copy that `evaluator(target, ...)` returned; anything else unchanged."""
    return getattr(target, "configured", target) if inspect.isfunction(target) else target


def _declare(settings: Mapping[str, Any], target: Any) -> Any:
    """Put the declaration on a class or function."""
    known = declaration_of(target)
    values = {name: value for name, value in settings.items() if value is not None}
    _check(values)
    if "name" in values:
        values["title"] = values.pop("name")
    if isinstance(values.get("needs"), str):
        values["needs"] = (values["needs"],)
    if "version" in values:
        values["version"] = str(values["version"])
    target.declaration = declared = replace(known, **values)
    target.score_settings = {key: settings[key] for key in SPEC_KEYS if settings.get(key) is not None}
    target.as_spec = _spec_of if isinstance(target, type) else functools.partial(_spec_of, target)
    if isinstance(target, type):
        # Any callable may have these attributes; other code reads them from instances.
        target.default_threshold = declared.threshold  # type: ignore[attr-defined]
        if "scope" in values:
            target.scope = declared.scope  # type: ignore[attr-defined]
        if declared.family:
            _accept_settings(target, declared)
    return target


def _accept_settings(kind: Any, declared: Declaration) -> None:
    """Let the constructor of a shipped evaluator take the settings of its score; `_spec_of` reads them."""
    create = kind.__init__
    parameters = dict(inspect.signature(create).parameters)
    parameters.pop("self", None)
    if any(item.kind is item.VAR_KEYWORD for item in parameters.values()):
        return
    settings = frozenset(SPEC_KEYS) - parameters.keys()
    required = [item.name for item in parameters.values() if item.default is item.empty]
    renamed: Mapping[str, str] = getattr(kind, "renamed_parameters", {})

    @functools.wraps(create)
    def init(self: Any, *args: Any, **named: Any) -> None:
        own = {key: named.pop(key) for key in settings & named.keys()} if named else {}
        for old in renamed.keys() & named.keys():
            notice = f"{declared.name}({old}=...) is now {declared.name}({renamed[old]}=...)"
            warnings.warn(notice, DeprecationWarning, stacklevel=2)
            named[renamed[old]] = named.pop(old)
        if unknown := next((key for key in named if key not in parameters), None):
            hint = did_you_mean(unknown, (*parameters, *SPEC_KEYS))
            raise TypeError(f"{declared.name}() has no argument {unknown!r}{hint}")
        if missing := [key for key in required[len(args) :] if key not in named]:
            example = declared.example.get(missing[0], "...")
            shown = f'"{example}"' if isinstance(example, str) else repr(example)
            raise TypeError(f"{declared.name}() needs {missing[0]!r}: {declared.name}({missing[0]}={shown})")
        values = {key: value for key, value in own.items() if value is not None}
        _check(values)
        create(self, *args, **named)
        if values:
            object.__setattr__(self, "score_settings", values)

    kind.__init__ = init


def _spec_of(target: Any) -> EvaluatorSpec:
    """The entry of a declared class, of an instance of it, or of a function with settings, for a list in Python."""
    own = _as_spec_fields(getattr(target, "__dict__", {}).get("score_settings", {}))
    inner = undecorated(target)
    if inner is not target:
        spec = spec_of(inner)
        return replace(spec, **own) if not spec.fingerprint else spec_of_code(target, inner, **own)
    kind = target if isinstance(target, type) else type(target)
    if not is_shipped_kind(kind):
        return spec_of_code(target, **own)
    if isinstance(target, type):
        return EvaluatorSpec(declaration_of(kind).name)
    arguments = _arguments(target)
    return (
        spec_of_code(target, **own) if arguments is None else EvaluatorSpec(declaration_of(kind).name, arguments, **own)
    )


def is_shipped_kind(kind: type) -> bool:
    """Whether a class is a shipped evaluator itself, and not one derived from it."""
    declared = vars(kind).get("declaration")
    return isinstance(declared, Declaration) and bool(declared.family) and kind.__module__.startswith("proctor.")


def _arguments(instance: Any) -> dict[str, Json] | None:
    """The arguments of an instance as a file has them, without defaults; `None` if one is not plain data."""
    arguments: dict[str, Json] = {}
    for item in fields(instance) if is_dataclass(instance) else ():
        default = item.default_factory() if item.default_factory is not MISSING else item.default
        value = getattr(instance, item.name)
        if not item.init or value is default or value == default:
            continue
        if item.name in HIDDEN_PARAMETERS or not _is_plain(value):
            return None
        arguments[item.name] = to_json(value)
    return arguments


def _is_plain(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and _is_plain(item) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, (str, int, float, bool))


def _as_spec_fields(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by the names of the fields of a spec, which calls the title `label`."""
    return {"label" if key == "name" else key: value for key, value in settings.items() if key in SPEC_KEYS}


def _check(values: Mapping[str, Any]) -> None:
    threshold = values.get("threshold", 0.0)
    if isinstance(threshold, bool) or not isinstance(threshold, (int, float)) or not 0 <= threshold <= 1:
        raise ValueError(f"threshold must be between 0 and 1, not {threshold!r}")
    if values.get("scope", "turn") not in ("turn", "case"):
        raise ValueError(f"scope must be 'turn' or 'case', not {values['scope']!r}")


def _copy(target: Any) -> Any:
    """A function that calls `target`, with its own declaration."""
    if is_async(target):

        async def call(*args: Any, **named: Any) -> Any:
            return await target(*args, **named)
    else:

        def call(*args: Any, **named: Any) -> Any:  # type: ignore[misc]
            return target(*args, **named)

    known = declaration_of(target)
    copy: Any = functools.wraps(target, updated=())(call)
    copy.__name__ = known.name
    copy.configured = undecorated(target)
    copy.declaration = known
    return copy


def _docstring_parts(target: Any) -> tuple[str, str]:
    first, _, rest = (inspect.getdoc(target) or "").partition("\n")
    return first, " ".join(rest.split())
