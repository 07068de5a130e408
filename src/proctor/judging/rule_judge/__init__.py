"""The rule-based judge: compares texts by written rules, with no model, no download and no account."""
