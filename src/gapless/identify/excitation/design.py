"""Excite: the motion, within a robot's limits, that tells most about what is still uncertain.

    plan = excite(twin, belief, 20.0, limits_of(twin, speed=3.0), np.random.default_rng(0))
    plan.motion                                       # commands (periods, joints)
    plan.after["designed"], plan.after["chirp"]       # expected standard deviations, in scaled units

Fisher information adds up over stretches that begin and end at home, so that many short ones are simulated once, with a
column of finite differences for each parameter, and those that tell most together are put one after the other. New ones are
bred from these. The objective is the mean over parameters of standard deviation after / before.
"""

from collections.abc import Callable

import numpy as np

from gapless.arrays import Array, Bools, Ints
from gapless.errors import BadInput
from gapless.identify.excitation.information import CHECKED, DRAWS, Judge, Uncertain, uncertain
from gapless.identify.excitation.limits import Limits, home_pose, levers, moving
from gapless.identify.excitation.result import MOTIONS, Excitation
from gapless.report import few
from gapless.twin import Belief, Twin
from gapless.worlds import multisine, plan_motion as plan

SHORTEST = 2.0  # s
STRETCH = 5.0  # s: about the length of a stretch
FADE = 0.2  # share of a stretch that leads from home into its pose, and as much back
TONES = 4
SLOWEST, FASTEST = 0.15, 8.0  # Hz
WORK = 5e7  # steps times degrees of freedom: about a minute on two cores, with what comes before and after the search
EXPLORED = 0.15  # share of the work that goes into random stretches before the best are bred
AVERAGED = 3  # robots over which the expected intervals are averaged
BATCH = 8  # stretches simulated together
COMPARED = 0.3  # of the work: if comparing the motions took more, what a parameter does to other joints is left out
TRIES = 4  # rounds in which a stretch is drawn in until it keeps the limits


class Family:
    """Stretches of motion that begin and end at home: each joint moves about a pose of its own, with a few tones that may be
    smooth or nearly square, so that slow, fast, jerky and still stretches are all in it.

    Genes of a joint: pose [-1, 1], log of squareness, size [rad], then log2 of Hz, weight and phase of each tone.
    """

    def __init__(self, judge: Judge, periods: int):
        self.judge, self.periods = judge, periods
        dt = judge.twin.control_dt
        self._t = np.arange(periods) * dt
        rise = np.clip(np.minimum(self._t, self._t[-1] - self._t - 2 * dt) / (FADE * periods * dt), 0.0, 1.0)
        self._envelope = rise**3 * (10 - 15 * rise + 6 * rise**2)  # least jerk; 1.875 / FADE is its steepest
        self._farthest = 0.6 * judge.limits.speed * FADE * periods * dt / 1.875
        self._bands = np.log2([SLOWEST, min(FASTEST, 0.2 / dt)])
        self._levers = levers(judge.twin)

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        """Random genes, of poses that are free to stand in. Shape: (n, joints, genes)."""
        joints = len(self.judge.home)
        out = np.empty((n, joints, 3 + 3 * TONES))
        out[..., 0] = np.clip(rng.normal(0, 0.4, (n, joints)), -0.9, 0.9)
        out[..., 1] = rng.uniform(-1.5, 1.5, (n, joints))
        out[..., 2] = 0.15 * self._levers
        middle = rng.uniform(self._bands[0], self._bands[1], (n, joints, 1))
        out[..., 3 : 3 + TONES] = middle + rng.normal(0, 0.7, (n, joints, TONES))
        out[..., 3 + TONES : 3 + 2 * TONES] = rng.exponential(1.0, (n, joints, TONES))
        out[..., 3 + 2 * TONES :] = rng.uniform(0, 2 * np.pi, (n, joints, TONES))
        for genes in out:
            sides = 0.25 * self._levers * rng.choice([-1.0, 1.0], (12, joints))  # rad: room to move about the pose
            for _ in range(20):
                if not self.judge.guard.touches(np.linspace(self.judge.home, self._pose(genes[:, 0]), 12) + sides):
                    break
                genes[:, 0] *= 0.8
        return out

    def _pose(self, part: Array) -> Array:
        """Joint angles from -1 (lower limit) over 0 (home) to 1 (upper limit)."""
        low, high, home = self.judge.limits.low, self.judge.limits.high, self.judge.home
        away = np.where(part > 0, part * (high - home), part * (home - low))
        return np.asarray(np.clip(home + np.clip(away, -self._farthest, self._farthest), low, high))

    def build(self, genes: Array, drawn: bool) -> tuple[Array, Bools]:
        """Commands (n, periods, joints) that about reach the limits, and which of them keep them (n,).

        The pose and the size that do are written into the genes. drawn: they are new, so that their sizes are far off.
        """
        genes[..., 0] *= self.judge.ease(self._base(genes), 2 if drawn else 1)
        base = self._base(genes)
        tone, weight, phase = np.split(genes[:, None, :, 3:], 3, axis=-1)
        hertz = 2.0 ** np.clip(tone, *self._bands)
        wave = (weight * np.sin(2 * np.pi * hertz * self._t[:, None, None] + phase)).sum(axis=-1)
        wave /= wave.std(axis=1, keepdims=True) + 1e-9
        wave = np.tanh(np.exp(genes[:, None, :, 1]) * wave)
        swing = self._envelope[:, None] ** 2 * wave / (np.abs(wave).max(axis=1, keepdims=True) + 1e-9)
        swing *= self.judge.moves
        if drawn:
            genes[..., 2] = np.minimum(genes[..., 2], self.judge.gentle(swing))
        genes[..., 2] = self.judge.fill(base, swing, genes[..., 2], (1, 1, 1 + DRAWS) if drawn else (1 + DRAWS,))
        motions = np.stack([self.judge.clear(c) for c in base + genes[:, None, :, 2] * swing])
        motions, scale, fine = self.judge.safe(motions, DRAWS, TRIES)
        genes[..., [0, 2]] *= scale[..., None]
        return motions, fine

    def _base(self, genes: Array) -> Array:
        """The way into the pose and back. Shape: (n, periods, joints)."""
        pose = np.stack([self._pose(g[:, 0]) for g in genes])
        away = np.where(self.judge.moves, pose - self.judge.home, 0.0)
        return np.asarray(self.judge.home + self._envelope[:, None] * away[:, None])

    def breed(self, parents: Array, pool: Array, best: Ints, n: int, rng: np.random.Generator) -> Array:
        """Children of the best: each is a parent, a little changed, some of whose joints move as in another stretch.

        Args:
            parents: genes of the stretches that tell most together.
            pool: genes of all.
            best: for each joint, which of the pool tell most about it, shape (k, joints).
            n: number of children.
            rng: chance.
        """
        child = parents[rng.integers(len(parents), size=n)].copy()
        joints = np.arange(child.shape[1])
        other = pool[rng.integers(len(pool), size=n)]
        good = pool[best[rng.integers(len(best), size=(n, len(joints))), joints], joints]
        chance = rng.random((*child.shape[:2], 1))
        child = np.where(chance < 0.1, other, np.where(chance < 0.35, good, child))
        scale = np.r_[0.15, 0.3, 0.0, np.full(TONES, 0.3), np.full(TONES, 0.3), np.full(TONES, 0.5)]
        change = rng.random((*child.shape[:2], 1)) < 0.5
        child += np.where(change, scale * rng.standard_normal(child.shape), 0.0)
        child[..., 0] = np.clip(child[..., 0], -0.95, 0.95)
        return child


def excite(
    twin: Twin,
    belief: Belief | None,
    seconds: float,
    bounds: Limits,
    rng: np.random.Generator,
    noise: float | None = None,
    work: float = WORK,
    tick: Callable[[float, str], object] = lambda done, words: None,
) -> Excitation:
    """Design a motion of so many seconds that tells most about what a belief leaves uncertain.

    Args:
        twin: a robot of position servos with a fixed or held base.
        belief: what is known; one real mismatch about nominal of what `gapless fit` fits unless given.
        seconds: its length.
        bounds: see `limits_of`.
        rng: source of all randomness.
        noise: standard deviation of measured positions [rad]; the belief's, or 0.001, unless given.
        work: how much to simulate in the search, in physics steps times degrees of freedom.
        tick: told the share of the search that is done and, in words, where it stands. If it is interrupted (Ctrl-C), the best
            so far is kept.
    """
    noise = _noise(belief) if noise is None else noise
    _check(twin, seconds, bounds, noise)
    moves = moving(twin, bounds)
    still = tuple(joint for joint, moved in zip(twin.joints, moves, strict=True) if not moved)
    what = uncertain(twin, belief, rng, still)
    judge = Judge(twin, what, bounds, noise)
    if not len(judge.columns):
        raise BadInput(
            f"no motion tells about {', '.join(what.space.names[:4])}: the belief has no parameter of a moving joint"
        )
    periods = round(seconds / twin.control_dt)
    compared = len(MOTIONS) * AVERAGED * (judge.probes + 1) * periods * twin.substeps * twin.model.nv
    judge.share_columns(local=compared > COMPARED * work and moves.sum() > 1)
    tick(0.0, "a chirp and a multisine within the limits")
    usual = _usual(judge, seconds, rng)
    parts = max(1, round(seconds / STRETCH))
    best, tried = _search(judge, periods // parts, parts, rng, work, tick)
    tick(1.0, "comparing the motions")
    warnings = _unchecked(judge, bounds, still)
    if len(best):
        rest = np.tile(judge.home, (periods - parts * (periods // parts), 1))
        designed = _kept(judge, np.concatenate([*_kept(judge, best), rest])[None])
    else:
        designed = usual[:1]
        warnings.append(f"no stretch of motion kept limits ({judge.tightest or 'links touch'}); a larger --effort tries more")
    motions = np.concatenate([usual, designed])
    after, left = _expected(judge, motions)
    for i in np.flatnonzero(left < left[-1]):  # so far only a few robots keep the limits with them
        motions[[i]] = _kept(judge, motions[[i]])
        after[[i]], left[[i]] = _expected(judge, motions[[i]])
    winner = int(left.argmin())
    if left[winner] < left[-1]:
        warnings.append(f"nothing was found that tells more than the {MOTIONS[winner]}")
        motions[-1], after[-1], left[-1] = motions[winner], after[winner], left[winner]
    peaks = judge.run(motions[-1][None], judge.robots).peaks
    peaks = Limits(peaks.low.min(axis=0), *(top.max(axis=0) for top in (peaks.high, peaks.speed, peaks.torque)))
    return Excitation(
        twin,
        what,
        bounds,
        motions[-1],
        dict(zip(MOTIONS, motions[:-1], strict=False)),
        dict(zip(MOTIONS, after, strict=True)),
        dict(zip(MOTIONS, left.tolist(), strict=True)),
        peaks,
        tried,
        tuple(warnings),
    )


def _noise(belief: Belief | None) -> float:
    """Noise of measured positions as the belief has it, else a milliradian [rad]."""
    known = dict(zip(belief.space.names, belief.mean().tolist(), strict=True)) | dict(belief.space.fixed) if belief else {}
    return float(known.get("sensors.noise_q", 0.0)) or 0.001


def _check(twin: Twin, seconds: float, bounds: Limits, noise: float) -> None:
    if not twin.drives:
        raise BadInput(f"{twin.name} has no drives, so no motion can be commanded; state gains (--kp, --kd) for its joints")
    if twin.floating:
        raise BadInput(
            f"{twin.name} has a floating base, and only a base that is held can be excited so far: hang it up (--in-air)"
        )
    if not SHORTEST <= seconds <= 600:
        raise BadInput(f"a motion to learn from lasts between {SHORTEST:g} and 600 s, not {seconds:g}")
    if not 0 < noise < 1:
        raise BadInput(f"the noise of measured positions must be between 0 and 1 rad, not {noise:g}")
    if not any(d.signal == "q" and not d.passive for d in twin.drives):
        raise BadInput(f"{twin.name} is not driven by position servos; state their gains (--kp, --kd)")
    if not moving(twin, bounds).any():
        widest = int(np.argmax(bounds.high - bounds.low))
        raise BadInput(
            f"the limits leave no room: the joint with the most, {twin.joints[widest]}, has "
            f"{(bounds.high - bounds.low)[widest]:.3g} rad to move in; allow a larger --reach"
        )


def _unchecked(judge: Judge, bounds: Limits, still: tuple[str, ...]) -> list[str]:
    """Sentences about what does not move, where the motion starts, and what could not be checked."""
    twin, home = judge.twin, home_pose(judge.twin)
    out = [f"not moved, as they are no position servos or have no room: {few(still)}"] if still else []
    beside = [f"{j} at {judge.home[i]:.3f}" for i, j in enumerate(twin.joints) if judge.moves[i] and judge.home[i] != home[i]]
    if beside:
        out.append(f"home is at the limit of joints, so that the motion starts beside it; go there first: {few(beside)} rad")
    if judge.left_out:
        share = f"{judge.left_out} of {len(judge.what.robots)} robots drawn from the belief"
        out.append(f"{share} break the limits however little they move, and were left out")
    if judge.local:
        out.append("intervals neglect what a parameter does to other joints than its own; a larger --effort would not")
    if judge.guard.blind:
        out.append(f"the links of {twin.name} have no shapes: collisions were not checked")
    free = [j for j, torque in zip(twin.joints, bounds.torque, strict=True) if np.isinf(torque)]
    return out + ([f"no torque limit is stated for {few(free)}: torque was not checked"] if free else [])


def _usual(judge: Judge, seconds: float, rng: np.random.Generator) -> Array:
    """A chirp and a multisine that are as large as the limits allow. Shape: (2, periods, joints)."""
    twin = judge.twin
    chirp, stand = plan("chirp", twin, seconds, rng), plan("stand", twin, seconds, rng)
    time: Array = np.arange(len(chirp), dtype=np.float64) * twin.control_dt
    sines = multisine(time, len(twin.joints), rng)
    eased = np.minimum(1.0, time / 0.5)[:, None] * sines / np.abs(sines).max(axis=0)
    swing = np.stack([(chirp - stand) / np.maximum(np.abs(chirp - stand).max(axis=0), 1e-9), eased]) * judge.moves
    base = np.tile(judge.home, (2, len(chirp), 1))
    size = np.minimum(0.3 * levers(twin), judge.gentle(swing))
    size = judge.fill(base, swing, size, (1, 1, 1 + DRAWS, 1 + DRAWS))
    motions = _kept(judge, np.stack([judge.clear(m) for m in base + size[:, None] * swing]), DRAWS)
    judge.sort(motions)
    return _kept(judge, motions, DRAWS)


def _kept(judge: Judge, motions: Array, drawn: int = CHECKED) -> Array:
    """Motions (n, periods, joints) with which the mean of the belief and robots drawn from it keep the limits."""
    motions, _, fine = judge.safe(motions, drawn)
    if not fine.all():
        raise BadInput(f"the limits leave no room: in every motion that was tried {judge.tightest}")
    return motions


def _search(
    judge: Judge, periods: int, parts: int, rng: np.random.Generator, work: float, tick: Callable[[float, str], object]
) -> tuple[Array, int]:
    """The stretches (parts, periods, joints) that tell most together, none where none kept the limits; how many were tried."""
    family = Family(judge, periods)
    genes: list[Array] = []
    motions: list[Array] = []
    informations: list[Array] = []
    chosen: list[int] = []
    start, tried, what = judge.steps, 0, judge.what
    try:
        while (done := (judge.steps - start) * judge.twin.model.nv / work) < 1.0:
            bred = done > EXPLORED and len(genes) >= BATCH
            if bred:
                pool, best = np.stack(genes), _by_joint(judge, np.stack(informations))
                new = family.breed(pool[chosen], pool, best, BATCH, rng)
            else:
                new = family.draw(BATCH, rng)
            commands, fine = family.build(new, drawn=not bred)
            tried += BATCH
            if fine.any():
                genes += list(new[fine])
                motions += list(commands[fine])
                informations += list(judge.information(commands[fine], what.centre))
                known = np.stack(informations)
                chosen = _together(what, known, parts)
                left = float(what.left(what.after(known[chosen].sum(axis=0))))
                tick(min(done, 1.0), f"uncertainty that it leaves: {100 * left:.1f} %")
    except KeyboardInterrupt:
        if not chosen:
            raise
    return np.array([motions[i] for i in chosen]), tried


def _together(what: Uncertain, informations: Array, parts: int) -> list[int]:
    """Which stretches tell most together: one after the other, then exchanged one by one as long as that helps."""
    chosen: list[int] = []
    for _ in range(parts):
        total = informations[chosen].sum(axis=0) if chosen else np.zeros_like(informations[0])
        chosen.append(int(np.argmin(what.left(what.after(total + informations)))))
    best = float(what.left(what.after(informations[chosen].sum(axis=0))))
    for _ in range(5):
        for k in range(parts):
            rest = informations[chosen[:k] + chosen[k + 1 :]].sum(axis=0)
            left = what.left(what.after(rest + informations))
            if left.min() < best - 1e-9:
                chosen[k], best = int(left.argmin()), float(left.min())
    return chosen


def _by_joint(judge: Judge, informations: Array) -> Ints:
    """For each joint, the stretches that tell most about its own parameters. Shape: (up to 3, joints)."""
    what, best = judge.what, np.zeros((min(3, len(informations)), len(judge.home)), dtype=np.int64)
    covariance = what.root @ what.root.T
    for j, joint in enumerate(judge.twin.joints):
        columns = [i for i in judge.columns if what.space.names[i].endswith(f"/{joint}")]
        if not columns:
            continue
        prior = covariance[np.ix_(columns, columns)]
        gained = informations[:, columns][:, :, columns]
        after = np.linalg.solve(np.eye(len(columns)) + prior @ gained, np.broadcast_to(prior, gained.shape))
        left = np.sqrt(np.maximum(np.diagonal(after, axis1=1, axis2=2), 0.0)) / what.spread[columns]
        best[:, j] = np.argsort(left.mean(axis=1))[: len(best)]
    return best


def _expected(judge: Judge, motions: Array) -> tuple[Array, Array]:
    """What motions tell, averaged over the mean and robots drawn from the belief: deviations (m, parameters), left (m,)."""
    space = judge.what.space
    first = [judge.twin.space.names.index((p.members or (p.name,))[0]) for p in space.parameters]
    points = np.concatenate([judge.what.centre[None], space.to_scaled(judge.drawn[: AVERAGED - 1, first])])
    informations = np.stack([judge.information(motions, point) for point in points])
    after = np.sqrt((judge.what.after(informations) ** 2).mean(axis=0))
    return after, judge.what.left(after)
