"""Eight mistakes. Each is found by mypy and by pyright, both strict, on its line; nothing here is executed."""

from proctor import Case, Contains, Expected, Suite

Case("q", {"contans": ["x"]})  # mistake
Case("q", expect="x")  # mistake
Case("q", tags=3)  # mistake
Suite("s", [Case("q")], evaluators=[3])  # mistake
Suite("s", [Case("q")], evaluators=[lambda output: "yes"])  # mistake
Suite("s", Case("q"))  # mistake
Contains(any=["a"], treshold=0.5)  # mistake
Expected(tools=[{"nme": "t"}])  # mistake
