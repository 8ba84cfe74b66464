"""The best delay is one for all logs, and the command so late is what it says."""

import numpy as np

from gapless.measure import best_delays, delayed_command, is_commanded
from tests.measure.made import log_of, smooth


def test_one_delay_of_each_joint_over_all_logs():
    rng = np.random.default_rng(0)
    logs = []
    for _ in range(3):
        command = smooth(8.0, rng)
        q = np.stack(
            [np.concatenate([c[:1].repeat(late), c[:-late]]) for c, late in zip(command.T, (2, 7), strict=True)], axis=1
        )
        logs.append(log_of(command, q))
    delays = best_delays(logs, ("j0", "j1"))["q"]
    np.testing.assert_allclose(delays, [0.02, 0.07], atol=0.0051)  # a command is held, so up to a period less is as good
    late = delayed_command(logs[0], "q", ("j0", "j1"), logs[0]["q"].time, delays)
    np.testing.assert_allclose(late[10:], logs[0]["q"].values[10:])


def test_what_was_not_commanded_has_no_delay():
    command = smooth(4.0, np.random.default_rng(0))
    log = log_of(command, command)
    assert set(best_delays([log], ("j0", "j1"))) == {"q"}
    assert is_commanded(log, "q", ("j0",)) and not is_commanded(log, "dq", ("j0",))
