"""What happens inside an application while it runs: spans in, trees of observations out.

An application marks its code with `observe`, `tool` and `wrap`, or is instrumented by OpenTelemetry. `capture` collects
the spans of one trial, and concurrent trials never see each other's. The engine stores them with the trial, and
evaluators read them.
"""
