"""Runs the tools that Proctor is compatible with next to Proctor, on the same inputs, and prints what differs.

    make peers-equal                                   # all tools
    PYTHONPATH=scripts python -m peers_equal adk       # one of them
    PYTHONPATH=scripts python -m peers_equal adk --docs    # and write the counts into docs/adk.md

Each original is installed from PyPI by its name, next to Proctor, into `.venv-peers/NAME`. The environment is kept for
the next call. The exit code is 1 if anything differs that the page of the tool does not list, if a listed difference
has disappeared, or if a tool could not be compared.

To add a tool, write `peers_equal/NAME.py` with a `PEER`, and name it in `PEERS` of `__main__.py`:

    def compare(environment: Environment) -> Iterator[Comparison]:
        inputs = {"a greeting": "Hello", "nothing": ""}
        original = environment.call("NAME_original.py", inputs)
        ours = environment.call("NAME_ours.py", inputs)
        yield compare_items("answers", original, ours, documented={"nothing": "an empty answer"})

    PEER = Peer("NAME", ("distribution-on-pypi",), compare)

- `Environment.call` runs a script in `peers_equal/drivers/` with the Python of the environment, where both the original
  and Proctor can be imported. The script gets two paths, of a JSON file with the inputs and of the one to write, and
  may print what it likes. It runs in an empty folder, which is its HOME too. `Environment.run` runs any other command.
- Inputs and results are mappings from the name of an input to JSON. `compare_items` compares them key by key.
- `documented` maps the name of an input to the first cell of the row of a table in docs/NAME.md that explains why it
  differs. That row must exist, and the input must differ.
- With `--docs`, the counts replace what is between the lines `<!-- peers-equal -->` and `<!-- end of peers-equal -->`
  of docs/NAME.md.
"""
