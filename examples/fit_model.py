"""From a wrong model and a log to a twin that predicts, and the truth beside what was found.

python examples/fit_model.py

Leaves twin.xml (plain MJCF), belief.json and a page in out/fitted.
"""

import numpy as np

import gapless
from gapless.worlds import StandIn, StandInSpec, build_standin, plan_motion, record

ROBOT = StandInSpec("bench", change={"gains.kp/*": "x0.7", "latency.action": 0.012}, sensors={"noise_q": 0.0005})


def main() -> None:
    robot = StandIn(ROBOT)
    log = record(robot, plan_motion("rich", build_standin(ROBOT), 6.0, np.random.default_rng(0)))
    fit = gapless.fit(gapless.as_given("bench", log), [log])
    print(fit)  # the held-out error before and after, whether to trust it, and what the log does not tell
    for name, true in robot.named().items():
        if name in fit.parameters:
            found = fit.parameters[name]
            print(f"{name}: model {found.nominal:.4g}, robot {true:.4g}, found {found.low:.4g} to {found.high:.4g}")
    fit.save("out/fitted")


if __name__ == "__main__":
    main()
