"""What fits of hypotheses do again, and what they need not."""

import numpy as np

from gapless.explain.compete import IDLE, moved, relinearised
from gapless.explain.contest import Contest, Fit, variables
from gapless.explain.physics import physics
from gapless.twin import Twin
from gapless.worlds.motion import plan
from gapless.worlds.standin import Spec, StandIn, build, record


def test_slopes_are_taken_again_only_of_numbers_whose_tolerance_shows(monkeypatch) -> None:
    spec = Spec("bench", seed=3, change={"gains.kp/*": "x0.8"})
    stand_in = StandIn(spec)
    log = record(stand_in, plan("rich", build(spec), 8.0, np.random.default_rng(0)), stand_in.signal)
    given = physics(Twin.load("bench"), [log])
    free = variables(given.twin)
    contest = Contest({"": given}, free, np.full(1, 1e-3), np.zeros((0, len(free))))
    nominal = moved(contest, [(Fit((), np.zeros(len(free)), np.zeros(0)), np.zeros(len(free)))])[0]
    asked = []
    taken = Contest.slopes_of
    monkeypatch.setattr(Contest, "slopes_of", lambda c, tried, affects: asked.append(tried[0][3]) or taken(c, tried, affects))
    slopes = contest.slopes_of([("", nominal.x, nominal.residual, range(len(free)))], contest.coupled)[0]
    low, high = contest.box
    shows = np.sqrt((slopes**2).mean(axis=0)) * np.maximum(-low, high)
    contest = Contest({"": given}, free, contest.floor, slopes)

    fitted, _ = relinearised(contest, nominal)
    assert sorted(asked[-1]) == np.flatnonzero(shows >= IDLE).tolist()
    assert 0 < len(asked[-1]) < len(free)
    idle = shows < IDLE
    np.testing.assert_array_equal(fitted.slopes[:, idle], slopes[:, idle])

    quiet = next(c for c, numbers in contest.causes.items() if idle[numbers].all())
    relinearised(contest, Fit((quiet,), nominal.x, nominal.residual))
    assert set(contest.causes[quiet]) < set(asked[-1])  # what is under trial always is
