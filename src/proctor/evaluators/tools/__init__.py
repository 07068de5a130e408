"""Whether an agent used its tools as it should have."""
