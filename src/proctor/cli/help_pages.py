"""The help of all commands: options in groups, commands in sections, and examples, in one place."""

from __future__ import annotations

import click

SECTIONS = {
    "Begin": "init doctor evaluators formats agents completion",
    "Run": "test rescore accept grade plan mutate",
    "Look at results": "runs show compare analyze view export import",
    "Know what is usual": "baseline flaky quarantine calibrate",
    "Data": "dataset trace cassette",
    "For other programs": "mcp",
}
"""The commands of each section; one that no section has stands under the last title."""
OTHERS = "Other commands"

GROUPS = {
    "Which cases": "case_ids case_id words tags only_failed failed suites",
    "Who answers, and who judges": "agents agent evaluators judge budget fast",
    "How often, and for how long": "repeat parallel timeout evaluator_timeout retries maxfail isolate rate",
    "On more processes and machines": "workers cluster upload tls_ca tls_cert tls_key",
    "Against what is usual": "gate gate_alpha gate_trials baseline fail_on target",
    "Earlier runs": "name resume reuse run_id rescored store",
    "What is told": "quiet verbose as_json output as_comment report_url pr_key judge_calls record_to "
    "md_to json_to junit_to html_to csv_to code_quality_to",
}
"""The options of each group, by the names of their parameters."""
ALL_OPTIONS, OTHER_OPTIONS = "Options", "Other options"
FEW = 8
"""So many options are shown in one list."""

EXAMPLES: dict[str, tuple[str, ...]] = {
    "": (
        "proctor init my_suite",
        "proctor test my_suite/suite.yaml",
        "proctor show last --failed",
    ),
    "init": (
        "proctor init my_suite",
        "proctor init my_suite --template langchain --ci github",
    ),
    "test": (
        "proctor test suite.yaml",
        "proctor test suite.yaml::refund --agent app.py:agent",
        "proctor test -k 'refund and not slow' --repeat 5 -j 4",
        """proctor test -e ExactMatch -e 'ROUGE={"variant": "rouge1", "threshold": 0.6}'""",
        "proctor test --gate --junit junit.xml --html report.html",
    ),
    "rescore": (
        "proctor rescore last",
        """proctor rescore last --case refund -e 'Regex={"pattern": "five days"}'""",
    ),
    "accept": (
        "proctor accept suite.yaml",
        "proctor accept suite.yaml::refund --run last --expect tools",
    ),
    "grade": ("proctor grade last", "proctor grade last --json", "proctor grade last --from grades.json"),
    "plan": ("proctor plan suite.yaml --see 0.1",),
    "runs": ("proctor runs -n 5", "proctor runs --suite shop --json"),
    "show": (
        "proctor show last --failed",
        "proctor show last~1 --case refund -v",
        "proctor show nightly --html report.html",
    ),
    "compare": (
        "proctor compare before last",
        "proctor compare last~1 last --case refund",
        "proctor compare main.jsonl last --fail-on regression --md comment.md --pr",
    ),
    "view": ("proctor view", "proctor view last --no-open"),
    "mutate": ("proctor mutate last", "proctor mutate last --min-kill 0.9"),
    "analyze": ("proctor analyze last", "proctor analyze last --json -o analysis.json"),
    "export": ("proctor export last -o run.jsonl",),
    "import": ("proctor import run.jsonl",),
    "baseline": ("proctor baseline accept last", "proctor baseline show suite.yaml"),
    "baseline accept": ("proctor baseline accept last",),
    "baseline show": ("proctor baseline show suite.yaml",),
    "baseline prune": ("proctor baseline prune suite.yaml --dry-run",),
    "flaky": ("proctor flaky", "proctor flaky suite.yaml --rejudge 5"),
    "quarantine": (
        "proctor quarantine refund --reason 'waits for the new API' --until 2030-01-31",
        "proctor quarantine refund --lift",
    ),
    "calibrate": ("proctor calibrate openai:gpt-5-mini labels.jsonl -e Faithfulness",),
    "dataset": ("proctor dataset validate suite.yaml", "proctor dataset convert suite.yaml faq.test.json"),
    "trace": ("proctor trace list --errors", "proctor trace to-case --trace last"),
    "trace to-case": ("proctor trace to-case --input trace.json --output entry.json",),
    "evaluators": ("proctor evaluators", "proctor evaluators Faithfulness"),
    "formats": ("proctor formats",),
    "agents": ("proctor agents",),
    "mcp": ("proctor mcp", "proctor mcp --agent app.py:agent"),
    "doctor": ("proctor doctor suite.yaml",),
    "completion": ("proctor completion bash",),
}
"""By command, as a person types them; a test parses each."""


def write_options(command: click.Command, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    """Write the options in groups where there are many, then the commands of a group, then the examples."""
    rows: dict[str, list[tuple[str, str]]] = {}
    options = [parameter for parameter in command.get_params(ctx) if isinstance(parameter, click.Option)]
    for option in options:
        row = option.get_help_record(ctx)
        if row is not None:
            title = _place(GROUPS, option.name or "", OTHER_OPTIONS) if len(options) > FEW else ALL_OPTIONS
            rows.setdefault(title, []).append(row)
    for title in (ALL_OPTIONS, *GROUPS, OTHER_OPTIONS):
        if title in rows:
            with formatter.section(title):
                formatter.write_dl(rows[title])
    if isinstance(command, click.Group):
        command.format_commands(ctx, formatter)
    write_examples(ctx, formatter)


def write_sections(commands: dict[str, str], formatter: click.HelpFormatter) -> None:
    """Write the one-line helps of all commands, section by section."""
    rows: dict[str, list[tuple[str, str]]] = {}
    for name, line in commands.items():
        rows.setdefault(_place(SECTIONS, name, OTHERS), []).append((name, line))
    order = [name for names in SECTIONS.values() for name in names.split()]
    for title in (*SECTIONS, OTHERS):
        if title in rows:
            with formatter.section(title):
                formatter.write_dl(sorted(rows[title], key=lambda row: order.index(row[0]) if row[0] in order else 0))


def write_examples(ctx: click.Context, formatter: click.HelpFormatter) -> None:
    examples = EXAMPLES.get(" ".join(_path(ctx)), ())
    if examples:
        with formatter.section("Examples"):
            for example in examples:
                formatter.write(f"{'':>{formatter.current_indent}}{example}\n")


def _path(ctx: click.Context) -> list[str]:
    """The command as it is called in the tables, without the program's own name."""
    names = []
    while ctx.parent is not None:
        names.append(ctx.info_name or "")
        ctx = ctx.parent
    return names[::-1]


def _place(table: dict[str, str], name: str, other: str) -> str:
    return next((title for title, names in table.items() if name in names.split()), other)
