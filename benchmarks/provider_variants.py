"""Proctor in other ways against the provider of `provider.py`, with the same options and columns.

    python benchmarks/provider_variants.py --tool proctor-judged --setting outage --cases 200 --runs 1

- `proctor-judged`: a model of the same provider judges each answer. It shares the limits; the ideal counts it.
- `proctor-langgraph`, `proctor-openai-agents`: agents of these frameworks. Their clients retry twice on their own.
- `proctor-threads`: a synchronous function with the synchronous client.
- `proctor-workers`: two workers. Each has its own connections; the provider's limits hold for both together.
- `proctor-gate`: `--gate` with a baseline of two trials per case, recorded before from a generous provider.

No answer changes between the baseline and the gated run, so the gate needs one trial per case, and the ideal is that of
an ordinary run.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

from environments import ROOT, environment_with
from provider import OUR_PROGRAM, Job, Tool, proctor_tool, run_benchmark

JUDGED_SUITE = {
    "evaluators": ["ExactMatch", {"LLMJudge": {"rubric": "The answer is the right one."}}],
    "judge": "openai:loopback-judge",
}
FRAMEWORKS = {
    "langgraph": ("langgraph", "langchain", "langchain-openai"),
    "openai-agents": ("openai-agents",),
}
"""The packages of each framework's environment, next to Proctor itself."""


def _program(framework: str) -> Path:
    """Proctor in an environment that has the framework too."""
    packages = ("--editable", str(ROOT), *FRAMEWORKS[framework])
    interpreter = environment_with(f"provider-{framework}", packages)
    if interpreter is None:
        sys.exit(f"{framework} cannot be installed")
    return interpreter.python.with_name("proctor")


def _framework_tool(name: str) -> Tool:
    driver = f"provider_{name.replace('-', '_')}.py"
    return proctor_tool(f"proctor-{name}", agent=f"{driver}:agent", program=partial(_program, name))


def _record_baseline(job: Job) -> list[str]:
    """Runs the suite twice, and accepts what it sees as the baseline."""
    record = proctor_tool("baseline", "--repeat", "2", "-j", "64").command(job)
    accept = [str(OUR_PROGRAM), "baseline", "accept"]
    program = f"import subprocess; subprocess.run({record!r}); subprocess.run({accept!r}, check=True)"
    return [sys.executable, "-c", program]


VARIANTS = {
    tool.name: tool
    for tool in (
        proctor_tool("proctor-judged", suite=JUDGED_SUITE, judged=True),
        *map(_framework_tool, FRAMEWORKS),
        proctor_tool("proctor-threads", agent="provider_agent.py:answer_in_thread"),
        proctor_tool("proctor-workers", "--workers", "2"),
        proctor_tool("proctor-gate", "--gate", preparation=_record_baseline),
    )
}


if __name__ == "__main__":
    run_benchmark(VARIANTS, "Variants of Proctor against a loopback provider.")
