"""The files of a turn as text: read from the suite's folder or downloaded, and converted by their type.

An `AttachedFile` comes in and a `FileText` goes out (`FileReader.read`). The engine calls it to send the text to the
agent, and so do the compat packages that have their own Python interface. `FileDigests` adds a digest of each file to
its case, so that a stored answer is reused only for the same contents.
"""
