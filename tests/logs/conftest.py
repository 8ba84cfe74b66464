"""Where the real logs are, and a small log to play with."""

from pathlib import Path

import numpy as np
import pytest

from gapless.logs import Log
from tests.data import DATA


@pytest.fixture(scope="session")
def data() -> Path:
    if not (DATA / "so101").is_dir():
        pytest.skip(f"the real logs are not at {DATA}; set GAPLESS_DATA to find them")
    return DATA


@pytest.fixture
def small() -> Log:
    """Two clocks, two joints, an IMU, a host clock, a missing value."""
    rng = np.random.default_rng(3)
    fast, slow = np.arange(40) * 0.01, np.arange(10) * 0.04 + 0.001
    log = Log.from_arrays(
        ("hip", "knee"),
        fast,
        {"q": rng.standard_normal((40, 2)), "dq": rng.standard_normal((40, 2)), "gyro": rng.standard_normal((40, 3))},
        host_time=fast + 100.0,
        meta={"kp": 20.0, "note": 'said "so"', "list": [1, 2.5], "firmware": {"P": 16}},
    )
    slower = Log.from_arrays(("hip", "knee"), slow, {"q_cmd": rng.standard_normal((10, 2))})
    values = log["q"].values.copy()
    values[3, 1] = np.nan
    q = Log.from_arrays(("hip", "knee"), fast, {"q": values}, host_time=fast + 100.0)
    return Log({**log.signals, **slower.signals, **q.signals}, log.joints, log.provenance, log.meta)
