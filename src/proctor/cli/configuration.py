"""What holds where neither the command line nor a suite says anything: project file, then environment."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from proctor.base.errors import UsageError
from proctor.base.fields import nearest
from proctor.base.records import record
from proctor.cases.suite import Settings
from proctor.results.store import FOLDER

KEYS: dict[str, Callable[[str], Any]] = {
    "store": str,
    "repeat": int,
    "parallel": int,
    "timeout": float,
    "evaluator_timeout": float,
    "retries": int,
    "judge": str,
    "budget": float,
    "keep_secrets": bool,
    "baseline": str,
}
NOUNS = {"budget": "an amount of dollars"}
PATHS = ("store", "baseline")
"""Settings that start from the folder of the project file."""
LEAST = {"repeat": 1, "parallel": 1, "retries": 0}


@record
class Configuration:
    """Each value with where it comes from."""

    values: Mapping[str, Any]
    origins: Mapping[str, str]

    @property
    def settings(self) -> Settings:
        names = {field.name for field in fields(Settings)}
        return Settings(**{name: value for name, value in self.values.items() if name in names})

    def store(self, given: str | None) -> Path:
        """The folder of the store: as given, as configured, or `.proctor` in the working folder."""
        return Path(given or self.values.get("store") or FOLDER)

    def budget(self, given: float | None) -> float | None:
        """What a run may cost: as given, or as configured."""
        return self.values.get("budget") if given is None else given


def read_configuration(folder: Path | None = None, environment: Mapping[str, str] | None = None) -> Configuration:
    """Project file before environment, value by value."""
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    environment = os.environ if environment is None else environment
    for name, convert in KEYS.items():
        variable = f"PROCTOR_{name.upper()}"
        if environment.get(variable):
            values[name] = _converted(name, environment[variable], convert, variable)
            origins[name] = variable
    path, table = _project_table(folder or Path.cwd())
    unknown = [f"{path}: {name!r} is not a known setting{nearest(name, KEYS)}" for name in table if name not in KEYS]
    if unknown:
        raise UsageError("\n".join(unknown))
    for name, value in table.items():
        converted = _converted(name, value, KEYS[name], str(path))
        values[name] = str(path.parent / converted) if name in PATHS and path is not None else converted
        origins[name] = str(path)
    return Configuration(values, origins)


def _converted(name: str, value: Any, convert: Callable[[Any], Any], origin: str) -> Any:
    """The value of a setting: text from the environment, or what a project file gives, of the right type."""
    if convert is bool:
        return _flag(name, value, origin)
    written: tuple[type, ...] = {str: (str,), int: (int,), float: (int, float)}[convert]  # type: ignore[index]
    if name == "judge" and isinstance(value, dict):
        return value
    fits = isinstance(value, written) and not isinstance(value, bool)
    try:
        if not fits and not (origin.startswith("PROCTOR_") and isinstance(value, str)):
            raise ValueError
        result = convert(value)
    except (TypeError, ValueError, OverflowError):
        usual = {int: "a whole number", float: "a number of seconds"}.get(convert, "text")  # type: ignore[call-overload]
        noun = NOUNS.get(name, usual)
        raise UsageError(f"{origin}: {name} must be {noun}, not {value!r}") from None
    if convert is not str and (result < LEAST.get(name, 0) or (convert is float and not 0 < result < float("inf"))):
        bound = f"at least {LEAST[name]}" if convert is int else "more than 0"
        raise UsageError(f"{origin}: {name} must be {bound}, not {value!r}")
    return result


def _flag(name: str, value: Any, origin: str) -> bool:
    words = {"true": True, "1": True, "false": False, "0": False}
    known = words.get(value.lower()) if origin.startswith("PROCTOR_") and isinstance(value, str) else value
    if not isinstance(known, bool):
        raise UsageError(f"{origin}: {name} must be true or false, not {value!r}")
    return known


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
    import tomllib

    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: is not valid TOML: {error}") from None
