"""The documented interfaces of HoloDeck, ADK, pixie and DeepEval, under their own names, on Proctor's engine.

Each folder is everything about one tool. Its `plugin.py` says what it adds to Proctor (file formats, evaluators, agent
kinds, reporters, commands) and is loaded by `proctor.plugins`, the same way as an outside package. A reader takes the
tool's files and returns `Suite`s; the rest are the tool's Python names. Nothing else in Proctor imports these packages.
"""
