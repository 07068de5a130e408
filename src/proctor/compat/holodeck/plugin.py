"""What HoloDeck adds to Proctor. Every command that loads files imports this module, so it must stay light."""

from __future__ import annotations

from pathlib import Path

from proctor.base.json_data import Json
from proctor.compat.holodeck._index import EVALUATORS
from proctor.compat.holodeck.metric_names import RAG, STANDARD
from proctor.plugins import AgentKind, Format, ImportName, JudgeSpelling, Plugin, Reporter, Template, TestOptions

_AGENT_KEYS = frozenset("model instructions evaluations execution agent".split())
_TEST_KEYS = frozenset("ground_truth expected_tools turns retrieval_context turn_config".split())


def recognises(path: Path, data: Json) -> bool:
    """Whether the file is an agent with tests.

    A file with only tests belongs to the agent that names it in `test_cases_file`.
    """
    if not isinstance(data, dict) or data.keys() <= {"test_cases"}:
        return False
    if "test_cases" not in data and "test_cases_file" not in data:
        return False
    if not _AGENT_KEYS.isdisjoint(data):
        return True
    tests = data.get("test_cases")
    return isinstance(tests, list) and any(isinstance(t, dict) and not _TEST_KEYS.isdisjoint(t) for t in tests)


def refusal(data: Json) -> str | None:
    """Why a file that describes an agent is not a suite, or None."""
    if isinstance(data, dict) and {"model", "instructions"} <= data.keys():
        return "describes an agent without tests; add 'test_cases' or 'test_cases_file'"
    return None


PLUGIN = Plugin(
    name="holodeck",
    formats=[
        Format(
            name="holodeck",
            summary="HoloDeck's `agent.yaml`: an agent, its metrics and its tests.",
            recognises=recognises,
            read="proctor.compat.holodeck.reader:read",
            suffixes=(".yaml", ".yml", ".json"),
            file_names=("agent.yaml", "agent.yml", "agent.json"),
            keys=frozenset({"test_cases", "test_cases_file"}),
            agent_hint="describe one with `model` and `instructions`, add `agent: app.py:agent`, or ",
            refusal=refusal,
        )
    ],
    judge_spellings=[
        JudgeSpelling(
            keys=frozenset({"provider"}),
            naming_keys=frozenset({"provider"}),
            read="proctor.compat.holodeck.judge_model:read_judge",
        )
    ],
    agents=[
        AgentKind(
            key="holodeck",
            build="proctor.compat.holodeck.agent:build_agent",
            check="proctor.compat.holodeck.agent:check_agent",
            example="agent: {holodeck: {model: {provider: openai, name: gpt-5-mini}, instructions: {inline: Hi}}}",
        )
    ],
    evaluators=EVALUATORS,
    evaluator_aliases={"geval": "GEval", **STANDARD, **RAG},
    reporters=[
        Reporter(
            name="holodeck",
            help="HoloDeck's TestReport as JSON.",
            write="proctor.compat.holodeck.reporter:write",
        ),
        Reporter(
            name="holodeck-md",
            help="HoloDeck's TestReport as Markdown.",
            write="proctor.compat.holodeck.reporter:write_markdown",
        ),
    ],
    templates=[
        Template(
            name="holodeck",
            summary="an agent.yaml with its tests",
            folder="proctor.compat.holodeck:template",
            test_arguments=("@agent.yaml",),
            shares=("agent.py",),
        )
    ],
    import_names={
        "holodeck": ImportName(
            home="proctor.compat.holodeck.api",
            modules="proctor.compat.holodeck.import_paths:IMPORT_PATHS",
            page="docs/holodeck.md",
        )
    },
    test_options=TestOptions(
        names=frozenset({"--output", "--format", "-n", "--parallel-test-cases", "--force-ingest", "-f"}),
        rewrite="proctor.compat.holodeck.command_line:rewrite_options",
        commands={
            "run": "name the file right after `test`: proctor test agent.yaml",
            "view": "see stored runs in a browser with: proctor view",
            "optimize": "Proctor does not optimize; compare two versions of an agent with --against",
        },
    ),
)
