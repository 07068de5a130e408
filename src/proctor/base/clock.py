"""The clocks as they were when Proctor was loaded: an agent or a test that patches `time` changes no measurement."""

from __future__ import annotations

from time import monotonic, perf_counter, time


class CLOCK:
    """A class and not module variables: libraries that freeze time look for its functions in modules."""

    time = staticmethod(time)
    monotonic = staticmethod(monotonic)
    perf_counter = staticmethod(perf_counter)
