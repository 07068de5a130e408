"""Data."""

import proctor
from proctor import Case, Suite

rows = [{"input": "Oslo", "expected": "sunny"}, {"input": "Bergen", "expected": {"output": "unknown"}}]
weather = lambda city: {"Oslo": "sunny"}.get(city, "unknown")
assert proctor.run({"name": "weather", "agent": weather, "cases": rows})
assert proctor.run(rows, weather)
assert Suite("weather", [Case(q, a) for q, a in [("Oslo", "sunny")]]).run(weather)
