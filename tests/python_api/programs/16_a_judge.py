"""A judge."""

from proctor import Case, LLMJudge, Suite


def agent(question):
    return "Your order A-17 is shipped."


def my_model(prompt):  # any client: a prompt in, a reply out
    return '{"verdict": "yes", "reason": "It says sorry."}'


run = Suite(
    "shop",
    [Case("A-18 never came.", evaluators=[LLMJudge("The answer apologises.", threshold=0.5)])],
    agent=agent,
    judge=my_model,
).run()
print(run[0].scores["LLMJudge"].reasoning)
