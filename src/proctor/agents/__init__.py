"""Agents: a reference (`file.py:name`, an address, a command, an object) in, an `Agent` out that answers turns.

`resolve` finds the agent. There is one file per kind of agent, and one adapter per framework in `frameworks/`. A
session answers each turn with a `Reply`. Whatever acts during a turn writes into its `TurnRecorder`, which belongs to
the `TrialContext` of the trial. The engine opens sessions and sends turns; nothing here scores.
"""
