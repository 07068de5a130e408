"""An agent.yaml as HoloDeck's Python interface hands it about: its tests, its settings, the version of its prompt."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar

from proctor.base.errors import InvalidSuite, Problem, UsageError
from proctor.base.json_data import UNSET, Json, plain, show
from proctor.base.source import read_text
from proctor.cases.formats import holodeck
from proctor.cases.formats.holodeck.agent_file import read_agent
from proctor.cases.formats.holodeck.configuration import config_files, resolve_execution
from proctor.cases.formats.holodeck.test_cases import is_conversation
from proctor.cases.matchers.value_matchers import Equals, Matcher
from proctor.cases.suite import Case, ExpectedCall, Suite, Turn
from proctor.declared.agent_reader import split_front_matter


class ConfigError(InvalidSuite):
    """An agent.yaml or a setting that cannot be used; carries every problem found, `field` and `message` of the first.

    Made with the name of a field and what is wrong with it, as in HoloDeck, or with problems.
    """

    def __init__(self, field: str | Iterable[Problem] = "", message: str = "") -> None:
        problems = [Problem(message, where=field)] if isinstance(field, str) else list(field)
        super().__init__(problems)
        self.field = problems[0].where if problems else ""
        self.message = problems[0].message if problems else ""


@dataclass
class ExecutionConfig:
    """How tests are run; `None` leaves it to the next source: the file, the project, the defaults."""

    file_timeout: float | None = None
    llm_timeout: float | None = None
    """Seconds for all turns of a test together."""
    download_timeout: float | None = None
    cache_enabled: bool | None = None
    cache_dir: str | None = None
    verbose: bool | None = None
    quiet: bool | None = None
    parallel_test_cases: int | None = None

    def __post_init__(self) -> None:
        for name in ("file_timeout", "llm_timeout", "download_timeout"):
            value = getattr(self, name)
            if value is not None and not (_is_number(value) and 0 < value < math.inf):
                raise UsageError(f"{name} must be a number of seconds, more than 0, not {value!r}")
        for name in ("cache_enabled", "verbose", "quiet"):
            if not isinstance(value := getattr(self, name), bool | None):
                raise UsageError(f"{name} must be true or false, not {value!r}")
        if not isinstance(self.cache_dir, str | os.PathLike | None):
            raise UsageError(f"cache_dir must be a folder, not {self.cache_dir!r}")
        at_once = self.parallel_test_cases
        if at_once is not None and not (_is_number(at_once) and at_once == int(at_once) and at_once >= 1):
            raise UsageError(f"parallel_test_cases must be a whole number from 1, not {at_once!r}")

    def over(self, other: ExecutionConfig) -> ExecutionConfig:
        """What this says, and where it says nothing, what `other` does."""
        own = {f.name: getattr(self, f.name) for f in fields(self)}
        return ExecutionConfig(**{n: getattr(other, n) if v is None else v for n, v in own.items()})


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


class TestCaseModel:
    """One test as its file says it."""

    __test__: ClassVar[bool] = False

    def __init__(self, case: Case) -> None:
        self.case = case

    @property
    def name(self) -> str:
        return self.case.description or self.case.id

    @property
    def input(self) -> str | None:
        return show(self._only.input) if self._only else None

    @property
    def ground_truth(self) -> str | None:
        return ground_truth(self._only) if self._only else None

    @property
    def expected_tools(self) -> list[Json] | None:
        return expected_tools(self._only) if self._only else None

    @property
    def files(self) -> list[Json] | None:
        return ([plain(item) for item in self._only.attachments] or None) if self._only else None

    @property
    def retrieval_context(self) -> list[str] | None:
        context = self._only.retrieval_context if self._only else None
        return None if context is None else list(context)

    @property
    def turns(self) -> list[Turn] | None:
        return None if self._only else list(self.case.turns)

    @property
    def _only(self) -> Turn | None:
        return None if is_conversation(self.case) else self.case.turns[0]

    def __repr__(self) -> str:
        return f"TestCaseModel({self.name!r})"


class AgentConfig:
    """An agent and its tests; `test_cases` may be shortened or put in another order before they are run."""

    def __init__(self, suite: Suite) -> None:
        self._suite = suite
        self._kept: Any = suite.extra.get(holodeck.EXTENSION, {})
        self.name = suite.name
        self.description = suite.description or None
        self.test_cases: list[TestCaseModel] | None = [TestCaseModel(case) for case in suite.cases]

    @property
    def suite(self) -> Suite:
        """The suite that `test_cases` make now."""
        return replace(self._suite, cases=tuple(test.case for test in self.test_cases or ()))

    @property
    def model(self) -> Json:
        return self._kept.get("model")

    @property
    def instructions(self) -> Json:
        return self._kept.get("instructions")

    @property
    def tools(self) -> Json:
        return self._kept.get("tools")

    @property
    def evaluations(self) -> tuple[Any, ...]:
        """The evaluators of every test that has none of its own."""
        return self._suite.evaluators

    @property
    def execution(self) -> ExecutionConfig:
        """What the file itself says, beside what it inherits."""
        given = {k: v for k, v in (self._kept.get("execution") or {}).items() if k in _EXECUTION}
        settings = self._suite.settings
        return ExecutionConfig(**given, llm_timeout=settings.timeout, parallel_test_cases=settings.parallel)

    def __repr__(self) -> str:
        return f"AgentConfig({self.name!r}, {len(self.test_cases or ())} tests)"

    @property
    def prompt_version(self) -> str | None:
        """What the instructions call their version in their front matter, else a mark that changes with their text."""
        found = prompt_version_of(self._suite)
        return None if found is None else found.version


class ConfigLoader:
    """Reads agent.yaml files."""

    def load_agent_yaml(self, file_path: str | Path) -> AgentConfig:
        """The agent of a file, be it without tests; raises `ConfigError` with every problem found.

        A file that a test names and that is not there is no such problem: a file processor may make it.
        """
        path = Path(str(file_path))
        try:
            return AgentConfig(read_agent(path))
        except InvalidSuite as error:
            raise ConfigError(error.problems) from error
        except OSError as error:
            raise ConfigError([Problem(f"cannot be read: {error.strerror or error}", path)]) from error

    def resolve_execution_config(self, agent: AgentConfig, given: ExecutionConfig | None = None) -> ExecutionConfig:
        """The first who says something wins: caller, agent.yaml, configuration files, environment, defaults."""
        suite = agent.suite
        files, problems = config_files(suite.base or Path.cwd())
        found, more = resolve_execution({}, str(suite.path), files)
        if problems or more:
            raise ConfigError([*problems, *more])
        usual = ExecutionConfig(**{name: setting.value for name, setting in found.items() if name in _EXECUTION})
        usual.llm_timeout, usual.parallel_test_cases = found["llm_timeout"].value, found["parallel_test_cases"].value
        return (given or ExecutionConfig()).over(agent.execution).over(usual)


_EXECUTION = tuple(f.name for f in fields(ExecutionConfig) if f.name not in ("llm_timeout", "parallel_test_cases"))


def settled(suite: Suite, config: ExecutionConfig) -> Suite:
    """The suite with `config` in force, whatever it says itself."""
    kept = dict(suite.extra.get(holodeck.EXTENSION, {}))
    kept["execution"] = {n: getattr(config, n) for n in _EXECUTION if getattr(config, n) is not None}
    settings = replace(suite.settings, timeout=config.llm_timeout, parallel=config.parallel_test_cases)
    return replace(suite, settings=settings, extra={**suite.extra, holodeck.EXTENSION: kept})


def ground_truth(turn: Turn) -> str | None:
    truth = turn.expected.output
    return None if truth is UNSET or truth is None else show(truth)


def expected_tools(turn: Turn) -> list[Json] | None:
    """As a file says them: a name, or a name with arguments and a count."""
    calls = turn.expected.tool_calls
    return None if calls is None else [_expected_tool(call) for call in calls]


def _expected_tool(call: ExpectedCall) -> Json:
    """As the user wrote it; a count of 1 goes without saying."""
    if call.arguments is None and call.count == 1:
        return call.name
    written: dict[str, Json] = {"name": call.name}
    if call.arguments is not None:
        written["args"] = {name: _shown(matcher) for name, matcher in call.arguments.items()}
    return written if call.count == 1 else {**written, "count": call.count}


def _shown(matcher: Matcher) -> Json:
    """A literal by itself, any other matcher as HoloDeck writes it: like the native form, but without the `$`."""
    if isinstance(matcher, Equals):
        return plain(matcher.value)
    form = plain(matcher.to_json())
    return {key.removeprefix("$"): item for key, item in form.items()} if isinstance(form, dict) else form


_NO_NOTES: Mapping[str, Json] = {}
_NOTED = ("version", "author", "description", "tags")


@dataclass(frozen=True, slots=True)
class PromptVersion:
    """What instructions say of themselves at their head, and what identifies the text that is sent."""

    version: str
    """As the instructions say, else `auto-` and the beginning of `body_hash`."""
    author: str | None = None
    description: str | None = None
    tags: tuple[str, ...] = ()
    source: str = "inline"
    """`inline` or `file`."""
    file_path: str | None = None
    body_hash: str = ""
    """SHA-256 of the text without its notes."""
    extra: Mapping[str, Json] | None = None
    """Whatever else is noted."""


def prompt_version_of(suite: Suite) -> PromptVersion | None:
    """The prompt as it is now; `None` where the file has none, or one that cannot be read."""
    kept: Any = suite.extra.get(holodeck.EXTENSION) or {}
    given = kept.get("instructions")
    if not isinstance(given, Mapping):
        return None
    path = given.get("file")
    text, notes = given.get("inline"), _NO_NOTES
    if isinstance(path, str):
        file = (suite.base or Path.cwd()) / path
        with suppress(InvalidSuite, ValueError):  # broken notes are a part of the text
            text = read_text(file)
            notes, text = split_front_matter(file, text)
    if not isinstance(text, str):
        return None
    mark = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    tags = notes.get("tags")
    return PromptVersion(
        version=f"auto-{mark[:8]}" if notes.get("version") is None else show(notes["version"]),
        author=_text(notes.get("author")),
        description=_text(notes.get("description")),
        tags=tuple(show(tag) for tag in (tags if isinstance(tags, list) else [tags] if tags else [])),
        source="file" if isinstance(path, str) else "inline",
        file_path=path if isinstance(path, str) else None,
        body_hash=mark,
        extra={key: plain(value) for key, value in notes.items() if key not in _NOTED} or None,
    )


def _text(value: Json) -> str | None:
    return None if value is None else show(value)
