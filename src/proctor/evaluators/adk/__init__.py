"""ADK's metrics, with the parsing, voting and averaging ADK documents."""
