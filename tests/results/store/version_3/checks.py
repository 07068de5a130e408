import proctor

tone = proctor.create_agent_evaluator("tone", "It is kind.")
