"""The files of a turn as text: found from the suite's folder or fetched, and read by their kind.

An `Attachment` comes in and a `FileText` goes out (`FileReader`); the engine, which passes the text to the agent, and
tools with a Python interface of their own are the callers. `Contents` keeps a digest of each file with its case.
"""

from proctor.cases.files.contents import CONTENTS, Contents, contents_of
from proctor.cases.files.file_reader import FileReader, title, with_files
from proctor.cases.files.file_text import FileText, Limits, UnreadableFile
from proctor.cases.files.kinds import NOT_TEXT, detected_kind, kind_said
from proctor.cases.suite import FileSettings

__all__ = [
    "CONTENTS",
    "NOT_TEXT",
    "Contents",
    "FileReader",
    "FileSettings",
    "FileText",
    "Limits",
    "UnreadableFile",
    "contents_of",
    "detected_kind",
    "kind_said",
    "title",
    "with_files",
]
