"""pixie's `enable_llm_tracing`, which needs OpenTelemetry."""

from __future__ import annotations

from proctor.base.errors import UsageError
from proctor.base.installation import install_command


def enable_llm_tracing() -> list[str]:
    """Turn on the installed instrumentations of model libraries and return their names."""
    try:
        from proctor.tracing import otel  # imports opentelemetry-sdk, which is optional
    except ImportError as error:
        raise UsageError(f"recording model calls needs OpenTelemetry: {install_command('tracing')} ({error})") from None
    return otel.enable_llm_tracing()
