"""Entry points of installed packages: how other packages bring formats, agents, evaluators and reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints


def entry_points(group: str, name: str | None = None) -> EntryPoints:
    """The entry points of a group, or those of one name in it.

    `importlib.metadata` is imported here because it is as heavy as asyncio, and most runs look for no plugin.
    """
    from importlib import metadata

    return metadata.entry_points(group=group) if name is None else metadata.entry_points(group=group, name=name)
