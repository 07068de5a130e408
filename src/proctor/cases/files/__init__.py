"""Attachments of a turn as text: where files are found, what kind they are, and how each kind is read."""
