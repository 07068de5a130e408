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
    return "It is lost."
