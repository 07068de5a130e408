"""A file."""

from pathlib import Path

import proctor
from proctor import Suite


def agent(question):
    return "Your order A-17 is shipped."


Path("shop.yaml").write_text("""\
cases:
  - {id: a, input: Where is A-17?, expected: {contains: shipped}}
  - {id: b, input: Hi, expected: {contains: hello}}
""")
assert proctor.run("shop.yaml", agent, case="a")
assert len(Suite.load("shop.yaml").run(agent).failed) == 1
