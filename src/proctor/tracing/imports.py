"""Calls a function right after a module has been imported, in any part of a program.

Agents often import their libraries inside the function that answers, after a trial has begun. A finder at the front of
`sys.meta_path` sees every import; for the modules in question it wraps the loader that the other finders return. Only
the first import of a module gets there, so all other imports cost a look into a dictionary.
"""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import threading
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

Patch = Callable[[ModuleType], None]


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self) -> None:
        self.patches: dict[str, Patch] = {}
        self._searching = threading.local()
        """The names that this thread is looking for with the other finders."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        patch = self.patches.get(fullname)
        names: set[str] = self._searching.__dict__.setdefault("names", set())
        if patch is None or fullname in names:
            return None
        names.add(fullname)
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            names.discard(fullname)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = _Loader(spec.loader, patch)
        return spec


class _Loader(importlib.abc.Loader):
    def __init__(self, loader: Any, patch: Patch) -> None:
        self._loader = loader
        self._patch = patch

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        module: ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        with contextlib.suppress(Exception):  # a module that cannot be patched must still be importable
            self._patch(module)


_FINDER = _Finder()


def after_import(name: str, patch: Patch) -> None:
    """Call `patch` with a module: now if it is imported, and after its import otherwise.

    May be called often. `patch` then is called each time, and has to do nothing if nothing is to be done.
    """
    module = sys.modules.get(name)
    spec = getattr(module, "__spec__", None)
    if module is not None and not getattr(spec, "_initializing", False):
        patch(module)
        return
    _FINDER.patches[name] = patch
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)
