"""The clocks that Proctor uses to measure time and to wait.

Tests of applications freeze time (`freezegun`, `time_machine`) and agents patch `time`. With frozen time a timeout
never ends and an event loop never wakes up, so Proctor takes the functions once, when it is loaded. They are
attributes of a class because libraries that freeze time replace such functions in the namespaces of modules.
"""

from __future__ import annotations

from time import monotonic, perf_counter, time


class Clock:
    """`time`, `monotonic` and `perf_counter` as they were when Proctor was loaded."""

    time = staticmethod(time)
    monotonic = staticmethod(monotonic)
    perf_counter = staticmethod(perf_counter)
