"""Information: what motions would tell about uncertain parameters, simulated, and whether robots like these keep the limits."""

from dataclasses import dataclass, replace

import numpy as np

from gapless.arrays import Array, Bools
from gapless.errors import BadInput
from gapless.identify.excitation.limits import MARGIN, Guard, Limits, levers, moving, start_of, torque_limits
from gapless.identify.excitation.simulate import Simulated, Simulator
from gapless.identify.full_model.window_objective import reaches
from gapless.identify.least_squares import colouring
from gapless.twin import Belief, Box, Gaussian, Particles, Point, Space, Twin, quantities, within_tolerance

CORRELATED = 0.1  # s: what a model cannot explain is alike for about as long, so that samples closer together count as one
DIFFERENCE = 3e-5  # scaled units: wider ones bend, and what bends looks like information where there is none
DRAWS = 6  # robots drawn from the belief that must keep the limits while searching
CHECKED = 32  # and in the end
FILLED = 0.96  # share of a design's limits that a motion is filled to
SATURATED = 1.5  # a drive at its limit would need more than it shows: about as much, so that motions shrink fast enough
BASE = 0.7  # share of a design's limits that the way into a pose and back may take: the rest is for moving about it
DRAWN_IN = 0.2  # share of its motion below which a joint that breaks a limit is moved to do so by others
STANDS = 1.0  # s: for so long robots must keep the limits where they stand, and then when they are nudged
NUDGE = 0.005  # rad: by as little,
NUDGED = 0.2  # and by no more than this share of what the jumps of its commands allow


@dataclass(frozen=True)
class Uncertain:
    """What is uncertain, as a Gaussian in the scaled space of its parameters."""

    space: Space
    centre: Array
    root: Array
    """covariance = root root'. Shape: (parameters, parameters)."""
    robots: Array
    """Drawn from it, for checks, over all of the twin's parameters: what the belief does not name is off by its tolerance.

    Shape: (n, parameters of the twin).
    """

    @property
    def spread(self) -> Array:
        """Standard deviations. Shape: (parameters,)."""
        return np.sqrt((self.root**2).sum(axis=1))

    def after(self, information: Array) -> Array:
        """Standard deviations once information (..., parameters, parameters) has been gained."""
        k = self.root.T @ information @ self.root
        covariance = self.root @ np.linalg.solve(np.eye(len(self.root)) + k, np.broadcast_to(self.root.T, k.shape))
        return np.sqrt(np.maximum(np.diagonal(covariance, axis1=-2, axis2=-1), 0.0))

    def left(self, after: Array) -> Array:
        """How much uncertainty is left: the mean over parameters of standard deviation after / before.

        A geometric mean would make what is well known still better known: its motions left errors of fits twice as large.
        Shapes: (..., parameters) to (...).
        """
        open_ = self.spread > 1e-9
        return np.asarray((after[..., open_] / self.spread[open_]).mean(axis=-1))


def uncertain(twin: Twin, belief: Belief | None, rng: np.random.Generator, still: tuple[str, ...] = ()) -> Uncertain:
    """A belief as a Gaussian; a point, or none, as one real mismatch of standard deviation about it.

    still: joints that do not move, about which no motion tells: left out where no belief is given.
    """
    if belief is None:
        names = [
            p.name
            for p in twin.space.parameters
            if p.quantity in quantities.of_any_drive() and p.name.partition("/")[2] not in still
        ]
        if not names:
            raise BadInput(f"{twin.name} has no parameters that a motion tells about; give a belief")
        space = twin.space.select(*names)
        belief = Point(space, space.nominal)
    twin.accepts(belief.space)
    space = belief.space
    centre, covariance = space.to_scaled(belief.mean()), np.eye(len(space))
    if isinstance(belief, Gaussian):
        covariance = np.asarray(belief.covariance, float)
    elif isinstance(belief, Box):
        covariance = np.diag((space.to_scaled(belief.high) - space.to_scaled(belief.low)) ** 2 / 12)
    elif isinstance(belief, Particles):
        covariance = np.atleast_2d(np.cov(space.to_scaled(belief.values).T, bias=True, aweights=belief.weights))
    if np.sqrt(np.diag(covariance)).max(initial=0.0) < 1e-9:
        raise BadInput("the belief leaves nothing uncertain, so no motion can tell more")
    size, axes = np.linalg.eigh(covariance)
    root = axes * np.sqrt(np.maximum(size, 0.0))
    drawn = Gaussian(space, np.clip(centre, *space.bounds), (covariance + covariance.T) / 2)
    robots = within_tolerance(twin.space).sample(CHECKED, rng)
    values = drawn.sample(CHECKED, rng)
    for name, column in space.spread(values).items():
        robots[:, twin.space.names.index(name)] = column
    return Uncertain(space, drawn.centre, root, robots)


class Judge:
    """Says what motions tell and whether they keep the limits."""

    def __init__(self, twin: Twin, what: Uncertain, limits: Limits, noise: float):
        """Refuses limits that the robot breaks where it stands; what drawn robots do not keep, they are left out for."""
        self.twin, self.what, self.noise = twin, what, noise
        self.moves, self.home = moving(twin, limits), start_of(twin, limits)
        self.limits, self._strongest, self._stated = limits.inside(self.home), torque_limits(twin), limits
        self.guard = Guard(twin, start=self.home, moves=self.moves)
        self._simulate = Simulator(twin, self.home)
        shown = [quantities.of(p.name).in_any_motion for p in what.space.parameters]
        self.columns = np.flatnonzero(np.array(shown) & (what.spread > 1e-9))
        self.share_columns(local=False)
        self.steps = 0  # simulated so far
        self.tightest = ""
        """Which limit of which joint the last motion that was given up broke."""
        self._stand()

    def _stand(self) -> None:
        """Robots, the mean of the belief first, that keep the limits where they stand and when they are nudged, and the torque
        that standing takes them. A servo that is unstable at the belief's edge swings up however small a motion is.
        """
        self.robots = np.concatenate([self._robots(self.what.centre[None]), self.what.robots])
        self.rest: Array = np.zeros((len(self.robots), len(self.home)))
        time = np.arange(max(1, round(STANDS / self.twin.control_dt))) * self.twin.control_dt
        motion, verb = np.tile(self.home, (1, len(time), 1)), "stand at home"
        wave = np.broadcast_to(np.sin(2 * np.pi * time / STANDS)[None, :, None], motion.shape) * self.moves
        for nudge in (False, True):
            if nudge:
                motion = motion + np.minimum(NUDGE * levers(self.twin), NUDGED * self.gentle(wave))[:, None] * wave
                verb = f"move by {np.ptp(motion, axis=1).max() / 2:.2g} rad about home"
            simulated = self.run(motion, self.robots)
            if not nudge:  # where soft servos sag to, such as an end stop, robots stand anyway
                slack, low, high = 2 * NUDGE * levers(self.twin), simulated.peaks.low[0], simulated.peaks.high[0]
                low = np.minimum(self.limits.low, np.maximum(low, self._stated.low) - slack)
                high = np.maximum(self.limits.high, np.minimum(high, self._stated.high) + slack)
                self.limits = replace(self.limits, low=low, high=high)
            over = self._over(simulated)
            if (over[:, 0] > 1.0).any():
                raise BadInput(f"{self.twin.name} cannot {verb} within the limits: {self._tightest(simulated, over[:, :1])}")
            keeps = (over.max(axis=0) <= 1.0).all(axis=1)
            rest = self.rest if nudge else simulated.peaks.torque
            self.robots, self.rest = self.robots[keeps], rest[keeps]
        self.drawn = self.robots[1:]
        """Of the robots, those drawn from the belief, as they were drawn. Shape: (n, parameters of the twin)."""
        self.left_out = 1 + len(self.what.robots) - len(self.robots)
        """Robots drawn from the belief that break the limits however little they move."""

    def share_columns(self, local: bool) -> None:
        """Parameters that move different joints share a simulation: those of different limbs, by which nothing is lost.

        local: a parameter of a joint moves that joint alone, which it moves most: few simulations for many joints.
        """
        joints, space = np.array(self.twin.joints), self.what.space
        trees = self.twin.model.dof_treeid[[d.dof for d in self.twin.drives]].astype(np.int64)
        every = [reaches(self.twin, p.members or (p.name,), trees) for p in space.parameters]
        self._affects = np.array(every).reshape(-1, len(joints))[self.columns]
        if local:
            own = np.array([joints == space.names[i].partition("/")[2] for i in self.columns])
            self._affects = np.where(own.any(axis=1, keepdims=True), own, self._affects)
        self._colour = colouring(self._affects).colour
        self.local, self.probes = local, int(self._colour.max(initial=-1)) + 1

    def run(self, motions: Array, robots: Array) -> Simulated:
        """See `Simulator`."""
        self.steps += len(motions) * len(robots) * (self._simulate.lead + motions.shape[1]) * self.twin.substeps
        return self._simulate(motions, robots)

    def _robots(self, scaled: Array) -> Array:
        """Robots with scaled parameters (k, parameters), otherwise as modelled. Shape: (k, parameters of the twin)."""
        return self.twin.expand(self.what.space.clip(self.what.space.from_scaled(scaled)), self.what.space)

    def information(self, motions: Array, point: Array) -> Array:
        """Fisher information of motions (m, periods, joints) about scaled parameters where they are `point` (parameters,).

        Shape: (m, parameters, parameters).
        """
        space, m, k = self.what.space, len(motions), self.probes
        step = np.where(point + DIFFERENCE < space.bounds[1], DIFFERENCE, -DIFFERENCE)[self.columns]
        near = np.tile(point, (k + 1, 1))  # the last one as it is
        near[self._colour, self.columns] += step
        simulated = self.run(motions, self._robots(near))
        q = simulated.q.reshape(m, k + 1, *simulated.q.shape[1:])
        moved = (q[:, self._colour] - q[:, k:]) * self._affects[:, None] / step[:, None, None]
        jacobian = moved.reshape(m, len(self.columns), -1)
        share = min(1.0, self.twin.control_dt / CORRELATED)
        out = np.zeros((m, len(space), len(space)))
        out[:, self.columns[:, None], self.columns] = share / self.noise**2 * (jacobian @ jacobian.transpose(0, 2, 1))
        return out

    def _over(self, simulated: Simulated, rest: Array | float = 0.0) -> Array:
        """By what factor each joint that moves exceeds its limits on position, speed and torque: 1 is just kept.

        Infinite where physics broke. rest: torque that standing takes, which no smaller motion takes less than; the factor is
        then of what is left. Shape: (3, n, joints).
        """
        bounds, peaks = self.limits, simulated.peaks
        outside = np.maximum(peaks.high - bounds.high, bounds.low - peaks.low) / (bounds.high - bounds.low)
        beyond = np.where(outside > 0, 1.0 + outside, 0.0)
        effort = (peaks.torque - rest) / (bounds.torque - rest)
        effort *= np.where(peaks.torque > np.maximum(0.99 * self._strongest, bounds.torque), SATURATED, 1.0)
        over = np.where(self.moves, np.stack([beyond, peaks.speed / bounds.speed, effort]), 0.0)
        return np.where(simulated.failed[:, None] | ~np.isfinite(over), np.inf, over)

    def _worst(self, motions: Array, robots: int) -> tuple[Array, Simulated]:
        """The largest factor of each joint over the first robots, (m, joints), and what they did."""
        simulated = self.run(motions, self.robots[:robots])
        over = self._over(simulated, np.tile(self.rest[:robots], (len(motions), 1)))
        worst = over.max(axis=0).reshape(len(motions), -1, len(self.home)).max(axis=1)
        if (worst > 1.0).any():
            self.tightest = self._tightest(simulated, over)
        return worst, simulated

    def sort(self, motions: Array) -> None:
        """Put the robots first that come nearest to the limits in motions (m, periods, joints): others keep what they keep."""
        simulated = self.run(motions, self.robots)
        over = self._over(simulated, np.tile(self.rest, (len(motions), 1))).max(axis=(0, 2))
        order = np.r_[0, 1 + np.argsort(-over.reshape(len(motions), -1).max(axis=0)[1:], kind="stable")]
        self.robots, self.rest = self.robots[order], self.rest[order]

    def _tightest(self, simulated: Simulated, over: Array) -> str:
        """The limit that is exceeded most, as a part of a sentence with what to do about it."""
        kind, robot, j = (int(i) for i in np.unravel_index(int(over.argmax()), over.shape))
        joint, peaks, bounds = self.twin.joints[j], simulated.peaks, self.limits
        rad, torque = ("m", "N") if levers(self.twin)[j] < 1 else ("rad", "N m")
        if simulated.failed[robot] or not np.isfinite(over).all():
            return "its physics break (lower --kp, or the model's timestep)"
        if kind == 0:
            ends = f"{peaks.low[robot, j]:.3f} to {peaks.high[robot, j]:.3f}"
            return (
                f"{joint} goes from {ends} {rad}, of {bounds.low[j]:.3f} to {bounds.high[j]:.3f} "
                "(stiffer gains --kp, a larger --reach, or another home keyframe)"
            )
        if kind == 1:
            return (
                f"{joint} moves at {peaks.speed[robot, j]:.3g} {rad}/s, of {bounds.speed[j]:.3g} that a design uses "
                "(a larger --speed, or more damping --kd)"
            )
        return (
            f"{joint} takes {peaks.torque[robot, j]:.3g} {torque}, of {bounds.torque[j]:.3g} that a design uses, "
            f"{100 * MARGIN:.0f} % of its limit (a larger --torque, softer gains --kp, or a home keyframe that takes less)"
        )

    def ease(self, base: Array, rounds: int) -> Array:
        """By what to multiply each joint's way from home, (m, joints), so that base (m, periods, joints) leaves room."""
        scale = np.minimum(1.0, BASE * self.gentle(base))
        for _ in range(rounds):
            worst, _ = self._worst(self.home + scale[:, None] * (base - self.home), 1)
            scale *= np.clip(BASE / np.maximum(worst, 1e-3), 0.2, 1.0)
        return scale

    def gentle(self, motion: Array) -> Array:
        """The size (m, joints) at which the jumps of commands (m, periods, joints) alone take all torque that standing leaves.

        A stiff servo that is told a new place each control period takes kp times the jump at once.
        """
        names, nominal = self.twin.space.names, self.twin.space.nominal
        gain = [nominal[names.index(n)] if (n := f"gains.kp/{j}") in names else 0.0 for j in self.twin.joints]
        jump = np.abs(np.diff(motion, axis=1)).max(axis=1)
        return np.asarray((self.limits.torque - self.rest[0]) / np.maximum(gain * jump, 1e-12))

    def fill(self, base: Array, swing: Array, size: Array, rounds: tuple[int, ...]) -> Array:
        """Size by joint (m, joints) with which base + size * swing (m, periods, joints) about reaches the limits.

        Args:
            base: the commands without the swing.
            swing: what is made larger or smaller.
            size: where to begin.
            rounds: on how many robots each round is run: the mean of the belief, then some drawn from it.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(swing > 0, (self.limits.high - base) / swing, (self.limits.low - base) / swing)
        most = np.maximum(np.where(np.abs(swing) > 1e-9, room, np.inf).min(axis=1), 0.0)
        size = np.minimum(most, size)
        for k in rounds:
            worst, _ = self._worst(base + size[:, None] * swing, k)
            size = np.minimum(size * np.clip(FILLED / np.maximum(worst, 1e-3), 0.4, 2.5), most)
        return size

    def clear(self, command: Array) -> Array:
        """A motion (periods, joints) drawn in towards home until its links keep clear of each other and of the ground."""
        for _ in range(20):
            if not self.guard.touches(command[::4]):
                break
            command = self.home + 0.9 * (command - self.home)
        return command

    def safe(self, stretches: Array, drawn: int = CHECKED, rounds: int = 40) -> tuple[Array, Array, Bools]:
        """Stretches (parts, periods, joints), with joints drawn in towards home until robots drawn keep the limits.

        Returns:
            The stretches, by what each joint was drawn in (parts, joints), and which of them keep the limits (parts,).
        """
        scale, fine, motions = np.ones((len(stretches), len(self.home))), np.zeros(len(stretches), dtype=bool), stretches.copy()
        for _ in range(rounds):
            todo = np.flatnonzero(~fine)
            motions[todo] = self.home + scale[todo, None] * (stretches[todo] - self.home)
            worst, simulated = self._worst(motions[todo], 1 + drawn)
            q = simulated.q.reshape(len(todo), -1, *simulated.q.shape[1:])[:, :, :: 1 if drawn == CHECKED else 4]
            for part, over, path in zip(todo, worst, q, strict=True):
                fine[part] = (over <= 1.0).all() and not self.guard.touches(path.reshape(-1, path.shape[-1]))
            if fine.all():
                break
            shrink = np.where(worst > 1.0, (0.98 / np.maximum(worst, 1.0)) ** 2, 1.0)  # squared, as a clipped torque hides more
            helpless = (worst > 1.0) & (scale[todo] < DRAWN_IN)
            scale[todo] *= np.maximum(shrink, 0.4)
            others = np.where(helpless.any(axis=1), 0.7, 0.95)  # its other joints, as these may be what moves it
            scale[~fine] *= others[~fine[todo], None]
        return motions, scale, fine
