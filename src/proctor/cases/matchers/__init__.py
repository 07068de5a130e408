"""Matchers: what a value must look like (equal, a pattern, a range, a type, one of several, an object or a list).

A value from a file comes in (`parse`) and a `Matcher` goes out. Readers of suites parse the arguments of expected tool
calls, mocks and final states; evaluators of tool calls ask a matcher for `differences_of` an actual value.
`value_matchers` and `container_matchers` have the matchers, each with its form in files; `reading` finds these forms at
any depth of a value.
"""

from proctor.cases.matchers.container_matchers import (
    Each,
    Including,
    ListOf,
    MaybeAbsent,
    ObjectOf,
    may_be_absent,
)
from proctor.cases.matchers.python_matchers import PythonMatcher
from proctor.cases.matchers.reading import (
    InvalidMatcher,
    OneOf,
    Subset,
    parse,
    parse_arguments,
    parse_open,
    parse_state,
)
from proctor.cases.matchers.value_matchers import (
    FORMS,
    Approx,
    Difference,
    Equals,
    Fuzzy,
    Ignore,
    Matcher,
    OfType,
    Predicate,
    Regex,
    accepts,
    contains_matchers,
    describe,
    describe_change,
    differences_of,
    hashable_key,
    json_equal,
    key_path,
    literal,
    summarize,
    unexpected_keys,
)

__all__ = [
    "FORMS",
    "Approx",
    "Difference",
    "Each",
    "Equals",
    "Fuzzy",
    "Ignore",
    "Including",
    "InvalidMatcher",
    "ListOf",
    "Matcher",
    "MaybeAbsent",
    "ObjectOf",
    "OfType",
    "OneOf",
    "Predicate",
    "PythonMatcher",
    "Regex",
    "Subset",
    "accepts",
    "contains_matchers",
    "describe",
    "describe_change",
    "differences_of",
    "hashable_key",
    "json_equal",
    "key_path",
    "literal",
    "may_be_absent",
    "parse",
    "parse_arguments",
    "parse_open",
    "parse_state",
    "summarize",
    "unexpected_keys",
]
