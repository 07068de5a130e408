"""The files of a turn as text: found from the suite's folder or fetched, and read by their kind.

An `AttachedFile` comes in and a `FileText` goes out (`FileReader`); the engine, which passes the text to the agent, and
tools with a Python interface of their own are the callers. `Contents` keeps a digest of each file with its case.
"""
