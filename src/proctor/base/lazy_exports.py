"""Names that a module imports only when they are first used, so that importing the module stays cheap."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any


def late_names(
    module: dict[str, Any], homes: Mapping[str, str], *, within: str, page: str = ""
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` for a module with these globals; `homes` tells which module under `within` has what.

    The names of one home are words; `Mine=Theirs` offers what is called `Theirs` there as `Mine`. `page` is the page of
    the documentation that lists the names.
    """
    home_of: dict[str, tuple[str, str]] = {}
    for home, names in homes.items():
        for word in names.split():
            name, _, own_name = word.partition("=")
            home_of[name] = f"{within}.{home}", own_name or name

    def fetch(name: str) -> Any:
        if name not in home_of:
            raise no_such_name(module["__name__"], name, home_of, page)
        from importlib import import_module

        home, own_name = home_of[name]
        value = module[name] = getattr(import_module(home), own_name)
        return value

    return fetch, lambda: sorted(module["__all__"])


def late_value(reference: str) -> Any:
    """What `module:name` refers to, for data that is shown by a package which builds on it."""
    from importlib import import_module

    module, _, name = reference.partition(":")
    return getattr(import_module(module), name)


def no_such_name(module: str, name: str, known: Iterable[str], page: str = "") -> Exception:
    """The exception for a name that a module does not have, to be raised by its `__getattr__`; it names the nearest.

    `from module import name` drops the text of an `AttributeError`, so there it is an `ImportError`; elsewhere, as in
    `hasattr`, it has to be an `AttributeError`.
    """
    if name.startswith("__"):
        return AttributeError(f"module {module!r} has no attribute {name!r}")
    import difflib
    import dis
    import sys

    close = difflib.get_close_matches(name, list(known), n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    told = f"module {module!r} has no attribute {name!r}{hint}" + (f" (see {page})" if page else "")
    frame = sys._getframe(2)
    importing = dis.opname[frame.f_code.co_code[frame.f_lasti]] == "IMPORT_FROM"
    return ImportError(told, name=module) if importing else AttributeError(told)
