"""What holds for every test: no network, no reports to anybody, one thread, and hypothesis the same on every machine.

The environment is set before anything that reads it is imported, for a test started by hand as for one by `make`.
"""

import os

from hypothesis import settings

for name, setting in {
    "OMP_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "PASSIVE",
    "HF_HUB_OFFLINE": "1",
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "MLFLOW_DISABLE_TELEMETRY": "true",
}.items():
    os.environ.setdefault(name, setting)

# Examples are derived from each test's name, so that a red test is red everywhere; a slow machine is no failure.
settings.register_profile("papo", derandomize=True, deadline=None, max_examples=100)
settings.load_profile("papo")
