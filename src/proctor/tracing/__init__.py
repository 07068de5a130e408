"""Traces: what happens inside an application while it runs.

An application marks its code with `observe`, `tool` and `wrap`, or is instrumented by OpenTelemetry; every marked step
and every model call becomes a span. `capture` collects the spans of one trial, and concurrent trials never see each
other's. `spans.build_tree` makes the tree of observations from them. `otlp` reads and writes trace files.

The engine (`proctor.running`) captures every trial and stores the spans with it. Evaluators, reports and the viewer
read them.
"""
