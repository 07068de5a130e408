"""Settings for all tests; the fixtures and the tiers are in `support/support_plugin.py`.

`HYPOTHESIS_PROFILE=thorough` tries ten times as many examples.
"""

from __future__ import annotations

import gc
import os
import signal
from pathlib import Path

from hypothesis import HealthCheck, settings

pytest_plugins = ["support_plugin"]

settings.register_profile("usual", max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thorough", parent=settings.get_profile("usual"), max_examples=300)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "usual"))

# The collector looks at every imported object in a full collection, which took a sixth of the time of the tests.
gc.set_threshold(20_000, 20, 100)

# Every client of a model reads all trusted certificates. No test leaves loopback, so one certificate is enough.
os.environ.setdefault("SSL_CERT_FILE", str(Path(__file__).parent / "support" / "one_certificate.pem"))

# A shell that starts the tests in the background makes them, and every process they start, ignore Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
