"""What all tests share: how hard Hypothesis looks, and that Ctrl-C is heard.

`HYPOTHESIS_PROFILE=thorough` makes it look ten times as hard.
"""

from __future__ import annotations

import os
import signal

from hypothesis import HealthCheck, settings

settings.register_profile("usual", max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thorough", parent=settings.get_profile("usual"), max_examples=300)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "usual"))

# A shell that starts the tests in the background makes them, and all they start, deaf to Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
