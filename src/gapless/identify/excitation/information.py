"""Information: what motions would tell about uncertain parameters, simulated, and whether robots like these keep the limits."""

from dataclasses import dataclass

import numpy as np

from gapless.arrays import Array, Bools
from gapless.errors import BadInput
from gapless.identify.excitation.limits import Guard, Limits, home_pose, torque_limits
from gapless.twin import Belief, Box, Gaussian, Particles, Point, Space, Twin, quantities, within_tolerance
from gapless.worlds import Sampler, Stream, Worlds

CORRELATED = 0.1  # s: what a model cannot explain is alike for about as long, so that samples closer together count as one
DIFFERENCE = 3e-5  # scaled units: wider ones bend, and what bends looks like information where there is none
DRAWS = 6  # robots drawn from the belief that must keep the limits while searching
CHECKED = 32  # and in the end
FILLED = 0.96  # share of a design's limits that a motion is filled to
SATURATED = 1.5  # a drive at its limit would need more than it shows: about as much, so that motions shrink fast enough


@dataclass(frozen=True)
class Simulated:
    """What simulated robots did."""

    q: Array
    """As read, once a control period. Shape: (n, periods, joints)."""
    peaks: Limits
    """Extremes over all physics steps. Shape of each: (n, joints)."""
    failed: Bools
    """Shape: (n,)."""


class Simulator:
    """Runs motions on robots that differ: from home, free-running, without noise."""

    def __init__(self, twin: Twin):
        self.twin = twin
        self._worlds: dict[int, Worlds] = {}  # by their number
        # left out where simulations are subtracted: what differs from one to the next
        self._random = [i for i, n in enumerate(twin.space.names) if not quantities.of(n).repeatable]

    def __call__(self, motions: Array, robots: Array) -> Simulated:
        """Every motion (m, periods, joints) on every robot (k, all parameters): worlds in the order of motions, then robots."""
        twin, substeps = self.twin, self.twin.substeps
        m, periods, joints = motions.shape
        which, values = np.repeat(np.arange(m), len(robots)), np.tile(robots, (m, 1))
        values[:, self._random] = 0.0
        n = len(which)
        if n not in self._worlds:
            self._worlds[n] = Worlds(twin, n, Point(twin.space, twin.space.nominal), signals=("q",))
        worlds = self._worlds[n]
        worlds.write(values)
        worlds.reset(redraw=False)
        command = np.tile(worlds.home_command, (m * periods, 1))
        command[:, [d.control for d in twin.drives]] = motions.reshape(-1, joints)
        sent = (np.arange(m * periods)[None] - periods * np.arange(m)[:, None]) * float(substeps)
        places, dofs = np.array([d.qpos for d in twin.drives]), np.array([d.dof for d in twin.drives])
        times: Array = np.arange(periods, dtype=np.float64)[None] * twin.control_dt
        q = Sampler("qpos", places, worlds.age, times, np.zeros_like(which), twin.model.opt.timestep)
        offset = worlds.path["path.offset_q"][:, None]
        low, high = np.full((n, joints), np.inf), np.full((n, joints), -np.inf)
        speed, torque = np.zeros((n, joints)), np.zeros((n, joints))
        for chunk in worlds.play(Stream(sent, command, which), periods * substeps, ("qpos", "qvel", "qfrc_actuator")):
            q.take(chunk)
            near = chunk.record["qpos"][:, :, places] + offset
            low, high = np.minimum(low, near.min(axis=1)), np.maximum(high, near.max(axis=1))
            speed = np.maximum(speed, np.abs(chunk.record["qvel"][:, :, dofs]).max(axis=1))
            torque = np.maximum(torque, np.abs(chunk.record["qfrc_actuator"][:, :, dofs]).max(axis=1))
        return Simulated(q.values + offset, Limits(low, high, speed, torque), worlds.failed)


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


def uncertain(twin: Twin, belief: Belief | None, rng: np.random.Generator) -> Uncertain:
    """A belief as a Gaussian; a point, or none, as one real mismatch of standard deviation about it."""
    if belief is None:
        names = [p.name for p in twin.space.parameters if p.quantity in quantities.of_any_drive()]
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
        self.twin, self.what, self.noise = twin, what, noise
        self.home = home_pose(twin)
        self.limits, self._strongest = limits.inside(self.home), torque_limits(twin)
        self.guard, self._simulate = Guard(twin), Simulator(twin)
        shown = [quantities.of(p.name).in_any_motion for p in what.space.parameters]
        self.columns = np.flatnonzero(np.array(shown) & (what.spread > 1e-9))
        self.steps = 0  # simulated so far

    def run(self, motions: Array, robots: Array) -> Simulated:
        """See `Simulator`."""
        self.steps += len(motions) * len(robots) * motions.shape[1] * self.twin.substeps
        return self._simulate(motions, robots)

    def _robots(self, scaled: Array) -> Array:
        """Robots with scaled parameters (k, parameters), otherwise as modelled. Shape: (k, parameters of the twin)."""
        return self.twin.expand(self.what.space.clip(self.what.space.from_scaled(scaled)), self.what.space)

    def information(self, motions: Array, point: Array, robots: int = DRAWS) -> tuple[Array, Bools]:
        """Fisher information of motions (m, periods, joints) about scaled parameters, and which motions keep the limits.

        Args:
            motions: commands.
            point: scaled parameters at which they are simulated, shape (parameters,).
            robots: so many drawn from the belief must keep the limits too.

        Returns:
            Shapes (m, parameters, parameters) and (m,).
        """
        space, m, k = self.what.space, len(motions), len(self.columns)
        step = np.where(point + DIFFERENCE < space.bounds[1], DIFFERENCE, -DIFFERENCE)[self.columns]
        near = point + step[:, None] * np.eye(len(space))[self.columns]
        probes = self._robots(np.concatenate([near, point[None]]))
        simulated = self.run(motions, np.concatenate([probes, self.what.robots[:robots]]))
        q = simulated.q.reshape(m, -1, *simulated.q.shape[1:])
        jacobian = ((q[:, :k] - q[:, k : k + 1]) / step[:, None, None]).reshape(m, k, -1)
        share = min(1.0, self.twin.control_dt / CORRELATED)
        out = np.zeros((m, len(space), len(space)))
        out[:, self.columns[:, None], self.columns] = share / self.noise**2 * (jacobian @ jacobian.transpose(0, 2, 1))
        fine = np.asarray(np.isfinite(out).all(axis=(1, 2)) & (self._excess(simulated).reshape(m, -1) <= 1.0).all(axis=1))
        for i in np.flatnonzero(fine):
            fine[i] = not self.guard.touches(q[i, k:, ::4].reshape(-1, q.shape[-1]))
        return out, fine

    def _excess(self, simulated: Simulated) -> Array:
        """By what factor each joint exceeds its tightest limit: 1 is just kept, infinite where physics broke. (n, joints)."""
        bounds, peaks = self.limits, simulated.peaks
        outside = np.maximum(peaks.high - bounds.high, bounds.low - peaks.low) / (bounds.high - bounds.low)
        beyond = np.where(outside > 0, 1.0 + outside, 0.0)
        effort = peaks.torque / bounds.torque * np.where(peaks.torque > 0.99 * self._strongest, SATURATED, 1.0)
        worst = np.maximum(np.maximum(peaks.speed / bounds.speed, effort), beyond)
        return np.where(simulated.failed[:, None] | ~np.isfinite(worst), np.inf, worst)

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
        robots = np.concatenate([self._robots(self.what.centre[None]), self.what.robots])
        for k in rounds:
            simulated = self.run(base + size[:, None] * swing, robots[:k])
            worst = self._excess(simulated).reshape(len(base), k, -1).max(axis=1)
            size = np.minimum(size * np.clip(FILLED / np.maximum(worst, 1e-3), 0.4, 2.5), most)
        return size

    def clear(self, command: Array) -> Array:
        """A motion (periods, joints) drawn in towards home until its links keep clear of each other and of the ground."""
        for _ in range(20):
            if not self.guard.touches(command[::4]):
                break
            command = self.home + 0.9 * (command - self.home)
        return command

    def safe(self, stretches: Array) -> Array:
        """Stretches (parts, periods, joints), with joints drawn in towards home until all robots drawn keep the limits."""
        scale = np.ones((len(stretches), 1, len(self.home)))
        for _ in range(40):
            motions = self.home + scale * (stretches - self.home)
            simulated = self.run(motions, self.what.robots)
            worst = self._excess(simulated).reshape(len(stretches), CHECKED, -1).max(axis=1)
            over = (worst > 1.0).any(axis=1)
            if not over.any():
                over = np.array([self.guard.touches(q) for q in simulated.q.reshape(len(stretches), -1, simulated.q.shape[-1])])
            if not over.any():
                return motions
            scale *= np.clip(np.where(worst > 1.0, 0.99 / worst, 1.0), 0.5, 1.0)[:, None]
            scale[over] *= 0.98  # and its other joints, as these may be what moves it
        raise BadInput("the limits leave no room: no motion was found that all robots within the belief keep them with")
