import time
from pathlib import Path

import proctor


@proctor.tool
def find_order(number: int) -> dict:
    return {"number": number, "status": "shipped"}


def agent(question: str) -> str:
    if question == "raise":
        raise RuntimeError("out of order")
    if "7" in question:
        return f"It was {find_order(number=7)['status']}."
    if "Refund" in question:
        return "The refund of order 8 was made."
    if "fee" in question:
        return "The fee is 5 dollars."
    if "Hello" in question:
        return "hello"
    if "Half" in question:
        return "half \ud83d and \U0001f600"
    if "10" in question and Path("wait").exists():
        time.sleep(60)  # so that a test can end the run here
    return "It is lost."
