"""The public names of `proctor.judging` and the module that defines each; `__init__.py` reads it too."""

# ruff: noqa: I001  one import for each module reads better than one for each name

from proctor.judging.judge import (
    Judge as Judge,
    NeedsModel as NeedsModel,
    Question as Question,
)
from proctor.judging.panel import (
    Panel as Panel,
)
from proctor.judging.questions import (
    agreements as agreements,
    attributions as attributions,
    choose as choose,
    claims as claims,
    comparison as comparison,
    entities as entities,
    relevant_sentences as relevant_sentences,
    statements as statements,
    useful_passages as useful_passages,
)
