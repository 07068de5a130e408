"""What all tests share: how hard Hypothesis looks, what need not be done again and again, and that Ctrl-C is heard.

`HYPOTHESIS_PROFILE=thorough` makes it look ten times as hard.
"""

from __future__ import annotations

import gc
import os
import signal
from pathlib import Path

from hypothesis import HealthCheck, settings

settings.register_profile("usual", max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thorough", parent=settings.get_profile("usual"), max_examples=300)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "usual"))

# All that the tests import is looked at in every full collection, which took a sixth of their time.
gc.set_threshold(20_000, 20, 100)

# Each client of a model reads all trusted certificates; no test goes further than loopback, so one is enough.
os.environ.setdefault("SSL_CERT_FILE", str(Path(__file__).parent / "support" / "one_certificate.pem"))

# A shell that starts the tests in the background makes them, and all they start, deaf to Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
