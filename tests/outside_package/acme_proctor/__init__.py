"""What a package outside of Proctor adds to it, all through one object; `tests/test_outside_package.py` uses it."""

from __future__ import annotations

from proctor.plugins import AgentKind, Command, Format, Plugin, Reporter

PLUGIN = Plugin(
    name="acme",
    formats=[
        Format(
            name="acme",
            summary="Acme's dialogue files",
            keys=frozenset({"dialogues"}),
            recognises=lambda path, data: isinstance(data, dict) and "dialogues" in data,
            read="acme_proctor.reader:read",
        )
    ],
    agents=[AgentKind(key="acme", build="acme_proctor.agent:build", example="agent: {acme: {greeting: Hello}}")],
    evaluators={"Brevity": "acme_proctor.checks:Brevity"},
    reporters=[Reporter(name="acme", help="Acme's score sheet.", suffix=".txt", write="acme_proctor.sheet:write")],
    commands=[Command(name="acme-hello", help="Greet from Acme.", target="acme_proctor.hello:command")],
)
