"""Whether an answer read as data is the expected data."""
