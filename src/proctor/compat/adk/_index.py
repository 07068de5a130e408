"""The evaluators of this package and where each is. Written by `python -m proctor.evaluators.index`."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from proctor.compat.adk.response_match import RougeWithThoughts as RougeWithThoughts
    from proctor.compat.adk.measured import Measured as Measured
    from proctor.compat.adk.hallucinations import Hallucinations as Hallucinations
    from proctor.compat.adk.judged_metrics import FinalResponseMatch as FinalResponseMatch
    from proctor.compat.adk.judged_metrics import ResponseEvaluation as ResponseEvaluation
    from proctor.compat.adk.judged_metrics import FinalResponseQuality as FinalResponseQuality
    from proctor.compat.adk.judged_metrics import ToolUseQuality as ToolUseQuality
    from proctor.compat.adk.judged_metrics import TrajectoryQuality as TrajectoryQuality
    from proctor.compat.adk.judged_metrics import UserSimulatorQuality as UserSimulatorQuality
    from proctor.compat.adk.judged_metrics import Safety as Safety
    from proctor.compat.adk.custom_metrics import AdkMetric as AdkMetric

EVALUATORS: dict[str, str] = {
    "RougeWithThoughts": "proctor.compat.adk.response_match:RougeWithThoughts",
    "Measured": "proctor.compat.adk.measured:Measured",
    "Hallucinations": "proctor.compat.adk.hallucinations:Hallucinations",
    "FinalResponseMatch": "proctor.compat.adk.judged_metrics:FinalResponseMatch",
    "ResponseEvaluation": "proctor.compat.adk.judged_metrics:ResponseEvaluation",
    "FinalResponseQuality": "proctor.compat.adk.judged_metrics:FinalResponseQuality",
    "ToolUseQuality": "proctor.compat.adk.judged_metrics:ToolUseQuality",
    "TrajectoryQuality": "proctor.compat.adk.judged_metrics:TrajectoryQuality",
    "UserSimulatorQuality": "proctor.compat.adk.judged_metrics:UserSimulatorQuality",
    "Safety": "proctor.compat.adk.judged_metrics:Safety",
    "AdkMetric": "proctor.compat.adk.custom_metrics:AdkMetric",
}
"""The module and class of each name that a suite may use."""
