"""Suites of cases: the data model, and the readers and writers of suite files.

Paths come in and `Suite`s go out (`formats.loading.load`). A `Suite` has `Case`s, a case has `Turn`s, and a turn has
what is `Expected` of the answer, with matchers for the arguments of tool calls. The command line, the pytest plugin and
`proctor.load` call it. The packages that run, score and report use the data model.
"""
