"""Whether an answer's text is, or nearly is, the expected one."""
