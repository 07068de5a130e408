"""In a test."""

from proctor import Case, Suite


def agent(question):
    return "Your order A-17 is shipped."


def test_shop():
    suite = Suite("shop", [Case("Where is A-17?", expected={"contains": "shipped"})], agent=agent)
    assert suite.run()
    suite.run(repeat=2).assert_passed()  # tells the whole story
