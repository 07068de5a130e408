"""The pytest plugin: suites are collected like tests, and ordinary tests use agents through fixtures.

`proctor.pytest_plugin` has the hooks and fixtures that pytest sees in every session. It imports this package only when
a suite file is collected or a fixture is used, except `pending_tests`, which decides about tests with pending checks.
`startup` decides which files are suites, `collection` and `items` are suites as pytest sees them, and `fixtures` is
what ordinary tests use. `session` holds everything of one test session: `settings`, the one run of all its trials
(`session_run`), the answers that tests share (`session_answers`), and the printed summary (`session_report`,
`trial_output`). Trials are executed by `proctor.running`.
"""
