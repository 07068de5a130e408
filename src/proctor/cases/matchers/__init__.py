"""What one value must look like: equal, a pattern, a range, a type, one of several, an object or list of such parts.

A value from a file comes in (`parse`), a `Matcher` goes out; readers of suites and evaluators of tool calls use it.
`value_matchers` and `container_matchers` have the matchers, each with the form in which files write it; `reading` finds
the forms in a value, however deep.
"""

from proctor.cases.matchers.container_matchers import (
    Each,
    Including,
    ListOf,
    ObjectOf,
    OptionalValue,
    may_be_absent,
)
from proctor.cases.matchers.reading import (
    BadForm,
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
    changed,
    data_key,
    describe,
    differences_of,
    first_of,
    has_forms,
    key_path,
    literal,
    not_expected,
    same,
)

__all__ = [
    "FORMS",
    "Approx",
    "BadForm",
    "Difference",
    "Each",
    "Equals",
    "Fuzzy",
    "Ignore",
    "Including",
    "ListOf",
    "Matcher",
    "ObjectOf",
    "OfType",
    "OneOf",
    "OptionalValue",
    "Predicate",
    "Regex",
    "Subset",
    "accepts",
    "changed",
    "data_key",
    "describe",
    "differences_of",
    "first_of",
    "has_forms",
    "key_path",
    "literal",
    "may_be_absent",
    "not_expected",
    "parse",
    "parse_arguments",
    "parse_open",
    "parse_state",
    "same",
]
