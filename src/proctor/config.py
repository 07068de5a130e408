"""The settings of a project: from `proctor.toml` or `[tool.proctor]`, then from `PROCTOR_*` variables.

The command line and suites win over these.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from proctor.base.documents import did_you_mean
from proctor.base.environment import environment_from
from proctor.base.errors import HiddenPackage, UsageError
from proctor.base.json_data import Json
from proctor.cases.arms import needs_agent
from proctor.cases.relocate import absolute_agent
from proctor.cases.suite import Settings, Suite
from proctor.import_aliases import check_aliases, install_aliases, names_in
from proctor.results.store.store import STORE_FOLDER
from proctor.running.settings import RunOptions

KEYS: dict[str, Callable[[str], Any]] = {
    "store": str,
    "repeat": int,
    "parallel": int,
    "timeout": float,
    "evaluator_timeout": float,
    "retries": int,
    "retry_seconds": float,
    "max_reply_bytes": int,
    "side_effects": bool,
    "judge": str,
    "budget": float,
    "keep_secrets": bool,
    "aliases": list,
    "env_file": str,
    "baseline": str,
    "agent": str,
}
CLUSTER = "cluster"
CLUSTER_KEYS: dict[str, type] = {
    "upload": bool,
    "tls_ca": str,
    "tls_cert": str,
    "tls_key": str,
    "allow_plain_tcp": bool,
}
"""The settings of the table `[tool.proctor.cluster]`."""
NOUNS = {"budget": "an amount in US dollars"}
PROJECT_FILES = ("proctor.toml", "pyproject.toml")
PATHS = ("store", "env_file", "baseline")
"""Settings that are paths, relative to the folder of the project file."""
MINIMUM = {"repeat": 1, "parallel": 1, "retries": 0, "max_reply_bytes": 1}


@dataclass(frozen=True, slots=True)
class Configuration:
    """The values of settings, and where each comes from."""

    values: Mapping[str, Any]
    origins: Mapping[str, str]
    env_files: tuple[Path, ...] = ()
    """The `env_file` of the settings, or else `.env` next to the project file if there is one."""
    cluster: Mapping[str, Any] = field(default_factory=dict)
    """How `--cluster` is reached: the settings in `[tool.proctor.cluster]`, by name."""

    @property
    def settings(self) -> Settings:
        names = {item.name for item in fields(Settings)}
        return Settings(**{name: value for name, value in self.values.items() if name in names})

    @property
    def agent(self) -> Json:
        """The agent for suites that name none, as it is found from any folder; `None` if there is none."""
        agent, origin = self.values.get("agent"), self.origins.get("agent", "")
        if agent is None or origin.startswith("PROCTOR_"):
            return agent
        return absolute_agent(agent, Path(origin).resolve().parent)

    def with_agent(self, suites: Sequence[Suite]) -> list[Suite]:
        """The suites; those that name no agent get the one of the project."""
        agent = self.agent
        return [
            replace(suite, agent=agent) if suite.agent is None and needs_agent(suite) else suite for suite in suites
        ]

    def store(self, option: str | None) -> Path:
        """The folder of the store: the option, the setting, or `.proctor` in the working folder."""
        return Path(option or self.values.get("store") or STORE_FOLDER)

    def environment(self) -> AbstractContextManager[None]:
        """A context in which the variables of `env_files` are set."""
        if not self.env_files:
            return nullcontext()
        return environment_from(self.env_files)

    def run_options(
        self, settings: Settings | None = None, *, judge: Any = None, budget: float | None = None, **more: Any
    ) -> RunOptions:
        """Options of a run: `settings`, `judge` and `budget`, or else the settings of the project."""
        return RunOptions(
            settings or Settings(),
            self.settings,
            judge=judge,
            default_agent=self.agent,
            default_judge=self.values.get("judge"),
            budget_usd=self.values.get("budget") if budget is None else budget,
            keep_secrets=self.values.get("keep_secrets", False),
            **more,
        )


def read_configuration(folder: Path | None = None, environment: Mapping[str, str] | None = None) -> Configuration:
    """The settings of the project that `folder` is in; for each, the project file wins over the environment."""
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    environment = os.environ if environment is None else environment
    for name, convert in KEYS.items():
        variable = f"PROCTOR_{name.upper()}"
        if environment.get(variable):
            values[name] = _convert(name, environment[variable], convert, variable)
            origins[name] = variable
    path, table = _project_table(folder or Path.cwd())
    cluster = {} if path is None else _cluster(path, table.pop(CLUSTER, {}))
    unknown = [
        f"{path}: {name!r} is not a known setting{did_you_mean(name, KEYS)}" for name in table if name not in KEYS
    ]
    if unknown:
        raise UsageError("\n".join(unknown))
    for name, value in table.items():
        converted = _convert(name, value, KEYS[name], str(path))
        values[name] = str(path.parent / converted) if name in PATHS and path is not None else converted
        origins[name] = str(path)
    return Configuration(values, origins, _env_files(values, origins, path), cluster)


def _cluster(path: Path, table: Any) -> dict[str, Any]:
    """The settings of a cluster; files start from the folder of the project file."""
    if not isinstance(table, dict):
        raise UsageError(f"{path}: {CLUSTER} must be a table of settings")
    for name, value in table.items():
        if name not in CLUSTER_KEYS:
            known = did_you_mean(name, CLUSTER_KEYS)
            raise UsageError(f"{path}: {CLUSTER}.{name} is not a known setting{known}")
        if not isinstance(value, CLUSTER_KEYS[name]):
            noun = "true or false" if CLUSTER_KEYS[name] is bool else "a file name"
            raise UsageError(f"{path}: {CLUSTER}.{name} must be {noun}, not {value!r}")
    return {name: str(path.parent / value) if isinstance(value, str) else value for name, value in table.items()}


def _env_files(values: Mapping[str, Any], origins: Mapping[str, str], project: Path | None) -> tuple[Path, ...]:
    if name := values.get("env_file"):
        if not Path(name).is_file():
            raise UsageError(f"{origins['env_file']}: env_file is {name}, which does not exist")
        return (Path(name),)
    default = None if project is None else project.with_name(".env")
    return () if default is None or not default.is_file() else (default,)


def _convert(name: str, value: Any, convert: Callable[[Any], Any], origin: str) -> Any:
    """The value of a setting, checked, and converted if it is text from the environment."""
    if convert is bool:
        return _boolean(name, value, origin)
    if convert is list:
        return _names(name, value, origin)
    types: tuple[type, ...] = {str: (str,), int: (int,), float: (int, float)}[convert]  # type: ignore[index]
    if name in ("judge", "agent") and isinstance(value, dict):
        return value
    is_right_type = isinstance(value, types) and not isinstance(value, bool)
    try:
        if not is_right_type and not (origin.startswith("PROCTOR_") and isinstance(value, str)):
            raise ValueError
        result = convert(value)
    except (TypeError, ValueError, OverflowError):
        default = {int: "a whole number", float: "a number of seconds"}.get(convert, "text")  # type: ignore[call-overload]
        noun = NOUNS.get(name, default)
        raise UsageError(f"{origin}: {name} must be {noun}, not {value!r}") from None
    if convert is not str and (result < MINIMUM.get(name, 0) or (convert is float and not 0 < result < float("inf"))):
        bound = f"at least {MINIMUM[name]}" if convert is int else "more than 0"
        raise UsageError(f"{origin}: {name} must be {bound}, not {value!r}")
    return result


def _boolean(name: str, value: Any, origin: str) -> bool:
    words = {"true": True, "1": True, "false": False, "0": False}
    result = words.get(value.lower()) if origin.startswith("PROCTOR_") and isinstance(value, str) else value
    if not isinstance(result, bool):
        raise UsageError(f"{origin}: {name} must be true or false, not {value!r}")
    return result


def _names(name: str, value: Any, origin: str) -> tuple[str, ...]:
    if origin.startswith("PROCTOR_") and isinstance(value, str):
        value = names_in(value)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise UsageError(f"{origin}: {name} must be a list of names, not {value!r}")
    return check_aliases(value)


def prepare_imports(folder: Path | None = None) -> list[str]:
    """Make user code importable: from the working folder, from the project's root, and through its aliases.

    `python -m proctor` finds modules of the working folder; the `proctor` script must not find fewer. Returns notes on
    aliases. A problem with the project file is left to the command that needs it.
    """
    place = (folder or Path.cwd()).resolve()
    if not sys.flags.safe_path:
        roots = (up for up in (place, *place.parents) if any((up / name).is_file() for name in PROJECT_FILES))
        folders = dict.fromkeys([str(place), *(str(root) for root in itertools.islice(roots, 1))])
        for entry in folders:
            _check_names(Path(entry))
        sys.path[:0] = [
            entry for entry in folders if entry not in sys.path and (entry != str(place) or "" not in sys.path)
        ]
    with contextlib.suppress(UsageError):
        return configured_aliases(place)
    return []


NEEDED_PACKAGES = {
    "click": "click",
    "dotenv": "python-dotenv",
    "genai_prices": "genai-prices",
    "httpx2": "httpx2",
    "jinja2": "Jinja2",
    "jsonschema_rs": "jsonschema-rs",
    "pydantic": "pydantic",
    "rapidfuzz": "rapidfuzz",
    "regex": "regex",
    "rich": "rich",
    "yaml": "PyYAML",
}
"""The packages that Proctor imports, by the name under which it does."""


def _check_names(folder: Path) -> None:
    """Raise `HiddenPackage` if modules of this folder would be imported in place of packages that Proctor needs."""
    for name, package in NEEDED_PACKAGES.items():
        own = next((path for path in (folder / f"{name}.py", folder / name / "__init__.py") if path.is_file()), None)
        if own is not None and name not in sys.modules:
            what = folder / name if own.name == "__init__.py" else own
            raise HiddenPackage(
                f"{what} hides the package {package}, which Proctor needs; rename it, or run Proctor in another folder"
            )


def configured_aliases(folder: Path, aliases: Sequence[str] = ()) -> list[str]:
    """Install `aliases`, or else those of the project file or the environment, and return notes for the user.

    Raises `UsageError`.
    """
    return install_aliases(tuple(aliases) or aliases_of(folder))


def aliases_of(folder: Path) -> tuple[str, ...]:
    """The aliases of the folder's project file or the environment; raises `UsageError` for an unknown one."""
    path, table = _project_table(folder)
    origin, value = (str(path), table["aliases"]) if "aliases" in table else _in_environment("aliases")
    return _names("aliases", value, origin) if value else ()


def _in_environment(name: str) -> tuple[str, str]:
    variable = f"PROCTOR_{name.upper()}"
    return variable, os.environ.get(variable, "")


def _project_table(folder: Path) -> tuple[Path | None, dict[str, Any]]:
    """The nearest `proctor.toml`, or the nearest `pyproject.toml` that has a `[tool.proctor]`."""
    for place in (folder, *folder.resolve().parents):
        own, shared = place / "proctor.toml", place / "pyproject.toml"
        if own.is_file():
            return own, _toml(own)
        if shared.is_file() and "tool.proctor" in shared.read_text(encoding="utf-8", errors="replace"):
            tool = _toml(shared).get("tool")
            table = tool.get("proctor") if isinstance(tool, dict) else None
            if isinstance(table, dict):
                return shared, table
            if table is not None:
                raise UsageError(f"{shared}: tool.proctor must be a table of settings")
    return None, {}


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: is not valid TOML: {error}") from None
