"""Agents: the things under test, and everything that happens while one answers a turn.

A reference comes in (`file.py:name`, a URL, a command line, a mapping of a suite file, or an object), and
`resolve.resolve_agent` returns the `BaseAgent` it means. There is one file per kind of agent (`function_agent`,
`http_agent`, `command_agent`, `chat_agent`, `runnable_agent`, `control_agents`), and one adapter per framework in
`frameworks/`.

The engine (`proctor.running`) opens one session per trial and sends it turns; each turn comes back as a `Reply`.
Whatever acts during a turn, such as a tool, a mock or an adapter, writes into the turn's `TurnRecorder`, which is found
through the `TrialContext` of the trial. Nothing in this package scores.
"""
