"""Makes files that import deepeval, pixie or holodeck run unchanged: these names resolve to `proctor.compat`.

`[tool.proctor] aliases = ["deepeval"]`, `PROCTOR_ALIASES` or pytest's ini option `proctor_aliases` turns it on. A
package that is really installed is used instead, unless its name ends with a `!`: `deepeval!`.
"""

from __future__ import annotations

import builtins
import difflib
import importlib
import re
import sys
from collections.abc import Iterable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

from proctor.base.documents import did_you_mean
from proctor.base.errors import UsageError
from proctor.plugins import ImportName, load, plugins

FORCED = "!"


def import_names() -> dict[str, ImportName]:
    """The packages that Proctor can replace, as plugins declare them."""
    return {name: package for plugin in plugins() for name, package in plugin.import_names.items()}


def _find_import_name(name: str) -> ImportName | None:
    """The declaration of a package; plugins of other packages are searched only for a name that is not shipped."""
    return next((plugin.import_names[name] for plugin in plugins() if name in plugin.import_names), None)


def install_aliases(aliases: Iterable[str]) -> list[str]:
    """Make these packages importable, and return notes for the user on those that are installed and win.

    Raises `UsageError` for an unknown package, and for one with a `!` that was imported before.
    """
    notes: list[str] = []
    for alias in check_aliases(aliases):
        name, forced = alias.removesuffix(FORCED), alias.endswith(FORCED)
        if isinstance(sys.modules.get(name), Alias):
            continue
        if not forced and (name in sys.modules or _is_installed(name)):
            notes.append(f"{name} is installed and is used; write {name}{FORCED} to use Proctor instead")
        elif name in sys.modules:
            raise UsageError(f"aliases: {name} is already imported, so {name}{FORCED} has no effect{_plugin(name)}")
        else:
            _forget(name)
            package = _find_import_name(name)
            assert package is not None  # check_aliases has looked it up
            sys.meta_path.insert(0, _Finder(name, package, forced))
    return notes


def check_aliases(aliases: Iterable[str]) -> tuple[str, ...]:
    """The same names; raises `UsageError` for a package that Proctor cannot replace."""
    names = tuple(aliases)
    for name in (alias.removesuffix(FORCED) for alias in names):
        if _find_import_name(name) is None:
            known = import_names()
            hint = did_you_mean(name, known) or f"; known are {', '.join(known)}"
            raise UsageError(f"aliases: unknown package {name!r}{hint}")
    return names


def _forget(name: str) -> None:
    sys.meta_path[:] = [other for other in sys.meta_path if not (isinstance(other, _Finder) and other.package == name)]


def _is_installed(name: str) -> bool:
    """Whether a package is on the path; a folder without code, which Python takes for a namespace, is not one."""
    spec = PathFinder.find_spec(name)
    return spec is not None and spec.origin is not None


def _plugin(name: str) -> str:
    return f"; turn off its pytest plugin with -p no:{name}" if name == "deepeval" else ""


class _Finder(MetaPathFinder, Loader):
    """Finds the modules of one package; an unknown module raises an error with the most similar name."""

    def __init__(self, name: str, package: ImportName, forced: bool) -> None:
        self.package = name
        self._package = package
        self._forced = forced
        self._paths: frozenset[str] | None = None

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        root, _, below = fullname.partition(".")
        if root != self.package or (not self._forced and self._is_real(root, below)):
            return None
        if below and below not in self._module_paths():
            # `from a import b` looks for a module `a.b` if `a` has no name `b`. It ignores the error that there is no
            # such module, and its hint, if the error names exactly that module: so the error names the package.
            reason = f"Proctor's replacement of {root} has no {fullname!r}"
            raise ModuleNotFoundError(f"{reason}{self._hint(fullname)} (see {self._package.page})", name=root)
        return ModuleSpec(fullname, self, origin=f"alias of {self._package.home}", is_package=True)

    def _hint(self, fullname: str) -> str:
        """The module or the name that was probably meant."""
        parent, _, name = fullname.rpartition(".")
        modules = (f"{self.package}.{known}".rpartition(".") for known in self._module_paths())
        beside = [known for above, _, known in modules if above == parent]
        known = similar_name(name, [*beside, *importlib.import_module(self._package.home).__all__])
        return f"; did you mean '{parent}.{known}'?" if known else ""

    def _is_real(self, root: str, below: str) -> bool:
        """Whether the real package is there now: pytest's option `pythonpath` extends the path after installing."""
        return not isinstance(sys.modules[root], Alias) if below else _is_installed(root)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return Alias(spec.name, self._homes(spec.name), self._package.page)

    def exec_module(self, module: ModuleType) -> None:
        return

    def _homes(self, fullname: str) -> list[str]:
        """The compat module of the same name, if there is one, then the one with all names."""
        top = fullname.split(".")[1:2]
        own = [f"{self._package.home}.{top[0]}"] if top and top[0] in self._package.own_modules else []
        return [*own, self._package.home]

    def _module_paths(self) -> frozenset[str]:
        if self._paths is None:
            listed: Sequence[str] = load(self._package.modules)
            self._paths = frozenset(".".join(path.split(".")[:n]) for path in listed for n in range(1, 5))
        return self._paths


class Alias(ModuleType):
    """A module under another package's name, which takes each name from the compat modules when it is first used."""

    def __init__(self, name: str, homes: Sequence[str], page: str) -> None:
        super().__init__(name, f"Proctor's names for {name}: see {page}.")
        self.__dict__.update(_homes=homes, _page=page)

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            names = importlib.import_module(self._homes[0]).__all__
            return [name for name in names if not hasattr(builtins, name)]  # such as HoloDeck's FileNotFoundError
        if not name.startswith("__") or name == "__version__":
            for home in map(importlib.import_module, self._homes):
                if name in home.__all__ or name in getattr(home, "PRIVATE_NAMES", ()):
                    return getattr(home, name)
        known = None if name.startswith("_") else similar_name(name, importlib.import_module(self._homes[-1]).__all__)
        hint = f"; did you mean {known!r}?" if known else ""
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}{hint} (see {self._page})")

    def __setattr__(self, name: str, value: Any) -> None:
        """`deepeval.evaluate` is a function and a module: the function stays when the import system adds the module."""
        if isinstance(value, Alias) and name in importlib.import_module(self._homes[0]).__all__:
            return
        super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted(importlib.import_module(self._homes[0]).__all__)


def similar_name(name: str, known: Iterable[str]) -> str | None:
    """The most similar of the known names, or None.

    A class is not similar to a function or a module. A last word that both names have is left out:
    `TextToImageMetric` and `PIILeakageMetric` are alike only in that they are metrics.
    """
    ratios = {other: _similarity(name, other) for other in known if other[:1].isupper() == name[:1].isupper()}
    best = max(ratios, key=lambda other: ratios[other], default=None)
    return best if best is not None and ratios[best] >= MIN_SIMILARITY else None


MIN_SIMILARITY = 0.7


def _similarity(name: str, other: str) -> float:
    own, others = (_LAST_WORD.fullmatch(text) for text in (name, other))
    if own and others and own["last"] == others["last"]:
        name, other = own["rest"], others["rest"]
    return difflib.SequenceMatcher(None, name, other).ratio()


_LAST_WORD = re.compile(r"(?P<rest>\w*[a-z0-9])(?P<last>[A-Z][a-z]+)")


def names_in(text: str) -> list[str]:
    """The names in a variable or an option, separated by commas or spaces."""
    return text.replace(",", " ").split()
