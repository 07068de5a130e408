"""Who answers: one adapter per kind of agent."""
