"""What one `wrap()` costs while nothing is tested, in CPU seconds by kind of value: LIBRARY (proctor or pixie)."""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections.abc import Callable
from typing import Any

VALUES = {
    "short string": "It is sunny in Oslo.",
    "20-key dict": {f"key {number}": f"value {number}" for number in range(20)},
    "1 MB string": "x" * 1_000_000,
}
LEAST_SECONDS = 0.05
"""A loop that is shorter says more about the clock than about the code."""


def main(library: str) -> None:
    wrap = importlib.import_module(library).wrap
    print(json.dumps({title: cost_of(wrap, value) for title, value in VALUES.items()}))


def cost_of(wrap: Callable[..., Any], value: Any) -> float:
    calls = 1
    while True:
        began = time.process_time()
        for _ in range(calls):
            wrap(value, purpose="output", name="answer")
        seconds = time.process_time() - began
        if seconds >= LEAST_SECONDS:
            return seconds / calls
        calls *= 2


if __name__ == "__main__":
    main(*sys.argv[1:])
