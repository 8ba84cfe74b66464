"""Fit a robot that walked on its own: no replay, since a walk cannot be repeated open-loop, but the same policy in many worlds.

found = fit_walking(twin, [log], lambda n: Pilot(policy, twin, (0.5, 0.0, 0.0), n).answer)

The policy closes the loop in each simulated robot. Nothing is aligned in time: distributions of positions, velocities, actions
and IMU are compared. Where simulated robots are drawn from narrows round by round about the most probable numbers.
"""

import time
from collections.abc import Mapping, Sequence

import numpy as np

from gapless.arrays import Array
from gapless.errors import BadInput
from gapless.gap import Distances, Motion, distances_between, joined, states
from gapless.identify import uncertainty as unknown
from gapless.identify.per_joint.ladder import Tick, quiet
from gapless.identify.result import estimates
from gapless.identify.walking.inference import Inference, learn, quantiles
from gapless.identify.walking.numbers import Numbers
from gapless.identify.walking.result import WalkingFit
from gapless.identify.walking.rollout import Crew, half_of, motion_of, walk
from gapless.logs import Log
from gapless.measure import admit, blocks_at
from gapless.robots import base_joint
from gapless.twin import Gaussian, Twin, origin_of

ROUNDS, WORLDS = 6, 384
SECONDS = 5.0  # that each simulated robot walks: four times as long told no more, as robots differ by more than runs do
WIDER = 1.5  # times the spread of the most probable numbers, of robots that are drawn after the first round
JUDGES, JUDGED = 4, 20.0  # simulated robots that a distance is taken to, and s that they walk


def fit_walking(
    twin: Twin,
    logs: Sequence[Log],
    crew: Crew,
    fixed: Mapping[str, float] | None = None,
    tick: Tick = quiet,
) -> WalkingFit:
    """Fit the numbers that walking may show to logs of a robot under the policy that `crew` has.

    Args:
        twin: the model; all of its parameters are nominal at the start.
        logs: of one policy that was asked for one thing all the time, from when it walks.
        crew: for a number of robots what commands them, as it commanded the real one.
        fixed: parameters that are known, by name or pattern, and their values.
        tick: told what is being done.
    """
    started = time.perf_counter()
    if base_joint(twin.model) is None:
        raise BadInput(f"the base of {twin.name} does not move, so it does not walk: fit it without a policy")
    admitted = admit(twin, logs)
    motions = [motion_of(twin, log) for log in admitted.logs]
    known = twin.space.fix(fixed or {}).fixed
    numbers = Numbers.of(twin, known)
    whole = joined(motions)
    halves = [half_of(whole, half) for half in (0, 1)]
    inference, centre, covariance, unlike, fell = _rounds(numbers, whole, crew, tick)
    tick("how near the fitted robot walks")
    # a half of the logs is judged by the fit to the other half
    others = [numbers.within(inference.posterior(_features(twin, signals))[0]) for signals, _ in halves]
    values = numbers.robots(np.stack([np.zeros(len(centre)), centre, *others]))
    as_given, as_fitted, *by_half = _walked(twin, values, crew)
    before, after = (
        float(np.mean([_distances(twin, half, model).mean.size for half, model in zip(halves, models, strict=True)]))
        for models in ([as_given, as_given], by_half[::-1])
    )
    k = len(numbers.space)
    belief = Gaussian(numbers.space, centre[:k], covariance[:k, :k])
    given = sum(float(np.ptp(log["q"].time)) for log in admitted.logs)
    return WalkingFit(
        robot=twin.name,
        parameters=estimates(belief),
        fixed=dict(known),
        nominal=_distances(twin, whole, as_given),
        fitted=_distances(twin, whole, as_fitted),
        heldout_given=before,
        heldout=after,
        unlike=unlike,
        fell=fell,
        undetermined=unknown.free(numbers.space, belief.covariance, electric=False, position_only=True),
        warnings=[*(f"left out {why}" for why in admitted.refused.values()), *admitted.notes],
        seconds=time.perf_counter() - started,
        seconds_used=given - len(motions),
        seconds_given=given,
        origin=origin_of(twin, admitted.logs),
        twin=twin,
        values=values[1],
        belief=belief,
    )


def walking_distance(twin: Twin, log: Log, values: Array, crew: Crew) -> Distances:
    """How far a twin with parameters over its space walks from how a log has it."""
    return _distances(twin, motion_of(twin, log), _walked(twin, values[None], crew)[0])


def _rounds(numbers: Numbers, measured: Motion, crew: Crew, tick: Tick) -> tuple[Inference, Array, Array, float, float]:
    """What was learnt last, the most probable numbers, their covariance, how unlike the robot is, and what share fell."""
    twin, rng, features = numbers.twin, np.random.default_rng(0), _features(numbers.twin, measured[0])
    centre, covariance, fallen = np.zeros(len(numbers.prior)), np.diag(numbers.prior**2), list[float]()
    for k in range(ROUNDS):
        tick(f"{WORLDS} simulated robots walk for {SECONDS:.0f} s, round {k + 1} of {ROUNDS}")
        drawn = numbers.sample(centre, covariance * (WIDER**2 if k else 1.0), WORLDS, rng)
        signals, fell = walk(twin, numbers.robots(drawn, rng), SECONDS, crew, rng)
        fallen.append(float(fell.mean()))
        if (~fell).sum() < 3 * len(centre):
            raise BadInput(
                f"{fell.sum()} of {WORLDS} robots fell or broke in simulation, which leaves too few to learn from: "
                "is it the policy of these logs, with the command that it had, and are the gains right (--kp, --kd)?"
            )
        alike = {s: signals[s][~fell] for s in measured[0]}
        inference = learn(drawn[~fell], _features(twin, alike), numbers.prior)
        centre, covariance, unlike = inference.posterior(features)
        centre = numbers.within(centre)
    return inference, centre, covariance, unlike, float(np.mean(fallen))


def _columns(twin: Twin) -> dict[str, tuple[str, ...]]:
    return dict.fromkeys(("q", "dq", "action"), twin.joints) | {"gyro": ("x", "y", "z")}


def _features(twin: Twin, signals: Mapping[str, Array]) -> Array:
    return quantiles(states(signals, _columns(twin))[1])


def _walked(twin: Twin, values: Array, crew: Crew) -> list[list[Motion]]:
    """How robots with parameters (n, parameters) walk, several of each: they differ in what their sensors read."""
    signals, _ = walk(twin, np.repeat(values, JUDGES, axis=0), JUDGED, crew, np.random.default_rng(1))
    block = blocks_at(twin.control_dt * np.arange(signals["q"].shape[1], dtype=np.float64))
    every: list[Motion] = [({s: v[i] for s, v in signals.items()}, block) for i in range(len(signals["q"]))]
    return [every[k * JUDGES : (k + 1) * JUDGES] for k in range(len(values))]


def _distances(twin: Twin, measured: Motion, walked: Sequence[Motion]) -> Distances:
    alike = [({s: signals[s] for s in measured[0]}, block) for signals, block in walked]
    return distances_between([measured], alike, _columns(twin), np.random.default_rng(0))
