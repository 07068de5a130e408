"""Whether an answer keeps to what was retrieved, and whether that was worth retrieving."""
