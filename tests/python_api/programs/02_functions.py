"""Functions."""

from proctor import Case, Evaluation, Suite


def polite(e):  # the whole Evaluable
    return "please" in e.output.lower()


def brief(output):  # or what it names
    return Evaluation(min(1, 20 / len(output)), f"{len(output)} characters")


run = Suite(
    "shop", [Case("Hi")], agent=lambda q: "Please wait.", evaluators=[polite, brief, lambda output: "wait" in output]
).run()
print(run.means["brief"])
