"""Any JSON, and documents with one value somewhere replaced by any other, for readers that must survive them."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import strategies as st

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3), max_leaves=8
)


def mutations(data: Any, values: st.SearchStrategy[Any] = VALUES) -> st.SearchStrategy[Any]:
    """The data with one value somewhere replaced by any other."""
    return st.builds(lambda place, value: _replace_at(data, place, value), st.sampled_from(_places(data, ())), values)


def _places(node: Any, path: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    inside = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return [path] + [place for key, item in inside for place in _places(item, (*path, key))]


def _replace_at(data: Any, place: tuple[Any, ...], value: Any) -> Any:
    if not place:
        return value
    changed = copy.deepcopy(data)
    node = changed
    for part in place[:-1]:
        node = node[part]
    node[place[-1]] = value
    return changed
