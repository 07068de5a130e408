"""What happened inside the agent while it answered."""
