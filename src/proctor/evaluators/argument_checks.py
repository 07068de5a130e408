"""Checks of the arguments that an evaluator is given; a wrong one is refused when the evaluator is built."""

from __future__ import annotations

from typing import Any


def require_flags(**flags: Any) -> None:
    """Refuse `"yes"` and `1` where true or false is meant."""
    for name, flag in flags.items():
        if not isinstance(flag, bool):
            raise ValueError(f"{name} must be true or false, not {flag!r}")


def require_choice(name: str, choice: Any, options: tuple[str, ...]) -> None:
    """Refuse a name that is not on the list."""
    if choice not in options:
        raise ValueError(f"{name} must be one of {', '.join(options)}, not {choice!r}")


def require_number(name: str, number: Any, *, least: float = 0.0, most: float = float("inf")) -> None:
    """Refuse what is no number within the bounds; NaN is within none."""
    if isinstance(number, bool) or not isinstance(number, (int, float)) or not least <= number <= most:
        bounds = f"of at least {least:g}" if most == float("inf") else f"between {least:g} and {most:g}"
        raise ValueError(f"{name} must be a number {bounds}, not {number!r}")


def require_text(name: str, value: Any) -> None:
    """Refuse a blank text; `None` means that none is given."""
    if value is not None and (not isinstance(value, str) or not value.strip()):
        raise ValueError(f"{name} must be a text that says something, not {value!r}")


def require_whole(name: str, number: Any, *, least: int) -> None:
    """Refuse what is no whole number of at least `least`."""
    if isinstance(number, bool) or not isinstance(number, int) or number < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, not {number!r}")
