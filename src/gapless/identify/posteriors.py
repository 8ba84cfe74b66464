"""The posterior of a fit as particles: its Gaussian weighted by the logs' likelihood, or learnt from simulations by a network.

    drawn = particles(fit, logs, 1000, np.random.default_rng(0))
    drawn = particles(fit, logs, 1000, np.random.default_rng(0), simulations=2000)  # learnt by a network; needs sbi
    Worlds(fit.twin, 64, drawn.belief)

Both hold windows of the logs against the full model. Errors count as independent once divided by their size, by how long they
last, and by how much more the windows disagree about the parameters than such errors would make them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gapless.arrays import Array
from gapless.errors import BadInput
from gapless.identify.flow import learn_flow, sbi
from gapless.identify.full_model import window_objective as coupled
from gapless.identify.full_model.standing import SIGNALS
from gapless.identify.least_squares import slopes
from gapless.identify.per_joint.ladder import Tick, quiet
from gapless.identify.result import Fit
from gapless.identify.sensitivity import lasting
from gapless.identify.uncertainty import FINEST, PRIOR
from gapless.logs import Log
from gapless.measure import windows
from gapless.twin import Gaussian, Particles

WINDOWS = 60  # of the logs, evenly spread: as many as the fit takes
WORLDS = 2000  # simulated together: a few hundred MB of a robot of twelve joints
ROUNDS = 4  # of importance sampling, each from a Gaussian that the one before improved
TAILS = 1.5  # over the root of the number of parameters: added to variances, so that draws reach all that counts
GOOD = 0.8  # times as many particles count as would if the posterior were a Gaussian: no other Gaussian will do much better
SANE = 0.2  # share of the particles that must count
FAR = 6.0  # standard deviations: a bound this far off cuts nothing
SWEEPS = 300  # of Gibbs sampling, enough where correlations are 0.99
LEAST = 100  # simulations, and ten times the parameters: fewer do not show any posterior
PILOT = 0.2  # share of the simulations that shows where the others are worth while
WIDE = 3.0  # times the posterior's width: the network must see more than what it is to tell apart
COPIES = 3  # of each simulation, with noise of its own, which costs nothing
STRANGE = 0.001  # share of the simulations that are farther out than the logs: with fewer, none was like them
STEPS = 10  # of the Markov chains at bounds, times the parameters


@dataclass(frozen=True)
class Drawn:
    """Particles, and what speaks against them."""

    belief: Particles
    """Over the parameters that were fitted."""
    effective: float
    """How many particles of equal weight are worth as much."""
    warnings: list[str]


def particles(
    fit: Fit,
    logs: Sequence[Log],
    n: int,
    rng: np.random.Generator,
    tick: Tick = quiet,
    signals: tuple[str, ...] = ("q",),
    simulations: int | None = None,
) -> Drawn:
    """Particles of what the logs leave possible in the full model, spread by what simulation in steps cannot tell.

    Args:
        fit: what was fitted.
        logs: what it was fitted to.
        n: particles. Unless the posterior is learnt, each is a simulation of the logs' windows in up to four rounds.
        rng: same seed, same particles.
        tick: told what is being done.
        signals: what the full model was fitted to; a floating base's own signals are always among it.
        simulations: of the logs' windows, to learn the posterior from (a few thousand): neural posterior estimation
            (Papamakarios and Murray 2016). Unless given, draws about the fit are weighted by the likelihood of the logs.
    """
    space = fit.belief.space
    least = max(LEAST, 10 * len(space))
    if simulations is not None and simulations < least:
        raise BadInput(f"a posterior of {len(space)} parameters needs at least {least} simulations, not {simulations}")
    if n < 2 * len(space):
        raise BadInput(f"a belief over {len(space)} parameters needs at least {2 * len(space)} particles, not {n}")
    if simulations is not None:
        sbi()
    tick("particles: slopes in the full model")
    p = problem(*_objective(fit, logs, signals))
    x, weights, warnings = weighted(p, n, rng, tick) if simulations is None else learnt(p, simulations, n, rng, tick)
    x = x + FINEST * rng.standard_normal(x.shape)
    if isinstance(fit.belief, Gaussian):  # what may be wrong besides what was fitted, as the fit has it
        size, along = np.linalg.eigh(fit.belief.covariance - np.cov(x.T, aweights=weights).reshape(len(space), -1))
        x = x + rng.standard_normal(x.shape) * np.sqrt(np.maximum(size, 0.0)) @ along.T
    values = space.clip(space.from_scaled(x))
    return Drawn(Particles(space, values, weights), _effective(weights), warnings)


@dataclass(frozen=True)
class Problem:
    """Independent errors of size 1 as a function of scaled parameters, and their slopes at the fit."""

    errors: Callable[[Array], Array]
    """(vectors, parameters) to (vectors, residuals)."""
    start: Array
    low: Array
    high: Array
    residual: Array
    """At the start."""
    jacobian: Array
    """There. Shape: (residuals, parameters)."""
    batch: int
    """Vectors that are simulated together."""

    def over(self, x: Array, reduced: Callable[[Array], Array], tick: Tick = quiet, words: str = "") -> Array:
        """Something about the errors at each of many vectors of parameters."""
        out = []
        for first in range(0, len(x), self.batch):
            tick(f"{words}: {first} of {len(x)} simulated")
            out.append(reduced(self.errors(x[first : first + self.batch])))
        return np.concatenate(out)

    def log_density(self, x: Array, tick: Tick = quiet, words: str = "") -> Array:
        """Of the posterior, up to a constant: the errors, and a prior about the model as given that is as weak as the fit's."""
        return -0.5 * (self.over(x, lambda e: (e**2).sum(axis=1), tick, words) + (x**2).sum(axis=1) / PRIOR**2)

    def gaussian(self) -> tuple[Array, Array]:
        """Centre and covariance of the posterior if errors were linear; the centre is less far off where they are not."""
        covariance = np.linalg.inv(self.jacobian.T @ self.jacobian + np.eye(len(self.start)) / PRIOR**2)
        step = -covariance @ (self.jacobian.T @ self.residual + self.start / PRIOR**2)
        tried = self.start + np.outer([1.0, 0.5, 0.25, 0.0], step)
        best = int(np.argmax(self.log_density(np.clip(tried, self.low, self.high))))
        return tried[best], (covariance + covariance.T) / 2


def problem(objective: coupled.Objective, start: Array) -> Problem:
    """An objective's errors made independent and of size 1; what it has besides parameters is integrated out.

    Zeros of single logs and starts of windows move errors nearly in proportion, so that what they can explain, given how large
    they may be, is taken out of all errors: exact for a linear Gaussian model.
    """
    k, columns = len(objective.space), len(objective.size)
    window = np.repeat(objective.data.window, columns)
    every, residual = slopes(objective, start, *objective.bounds, objective.coloured), objective(start[None])[0]
    asked, others = every[:, :k], every[:, k:]
    if others.size:
        others = others * objective.prior[k:]
        scale = _scale(residual, asked, window, columns)
        start, residual = _settled(objective, start, others / scale[:, None], residual / scale)
    scale = _scale(residual, asked, window, columns)
    along, size, _ = np.linalg.svd(others / scale[:, None], full_matrices=False)
    share = 1 - 1 / np.sqrt(1 + size**2)

    def without(e: Array) -> Array:
        return np.asarray(e - (e @ along * share) @ along.T)

    def errors(x: Array) -> Array:
        return without(objective(np.column_stack([x, np.tile(start[k:], (len(x), 1))])) / scale)

    low, high = (b[:k] for b in objective.bounds)
    batch = max(1, WORLDS // objective.data.count)
    return Problem(errors, start[:k], low, high, without(residual[None] / scale)[0], without(asked.T / scale).T, batch)


def _settled(objective: coupled.Objective, start: Array, others: Array, residual: Array) -> tuple[Array, Array]:
    """Zeros and starts of windows one Gauss-Newton step on, as a fit does not tell all of them, if that helps; residuals."""
    step = np.linalg.solve(others.T @ others + np.eye(others.shape[1]), -others.T @ residual)
    moved = start.copy()
    moved[-len(step) :] += step * objective.prior[-len(step) :]
    tried = np.stack([start, np.clip(moved, *objective.bounds)])
    residuals = objective(tried)
    best = int(np.argmin((residuals**2).sum(axis=1)))
    return tried[best], residuals[best]


def _objective(fit: Fit, logs: Sequence[Log], signals: tuple[str, ...]) -> tuple[coupled.Objective, Array]:
    """The windows of the logs in the full model, and where the fit ended there."""
    if not logs:
        raise BadInput("there is no log to weigh parameters with")
    twin, space = fit.twin, fit.belief.space
    if twin.floating:
        signals = (*signals, *(s for s in SIGNALS if s not in signals and all(s in log for log in logs)))
    begins = twin.floating and not {"base_pos", "base_vel"} <= set(signals)
    data = windows(twin, logs, most=WINDOWS, signals=signals)
    size = coupled.typical(data, fit.values)
    objective = coupled.Objective(data, space, fit.values, size, bool(fit.zeros), begins)
    start = np.append(space.to_scaled(fit.belief.mean()), objective.start[len(space) :])
    return objective, np.clip(objective.with_zeros(start, fit.zeros), *objective.bounds)


def _scale(r: Array, jacobian: Array, window: NDArray[np.int64], columns: int) -> Array:
    """What errors are divided by to count as independent ones of size 1. Shape: (residuals,).

    r: residuals, samples in order, the columns of a sample side by side. window: the number of each residual's window.
    """
    from scipy.stats import t as student

    k = jacobian.shape[1]
    used = np.abs(r) + np.abs(jacobian).sum(axis=1) > 0
    free = 1 - min(k / max(int(used.sum()), 1), 0.9)
    square = np.empty(len(r))
    for column in range(columns):
        mine = slice(column, None, columns)
        noise = float(r[mine] @ r[mine]) / max(float(used[mine].sum()) * free, 1.0)
        square[mine] = max(noise, 1e-18) * lasting(r[mine])
    # errors of different windows are independent: where the windows' pulls on the parameters differ by more than such errors
    # explain, all errors count as larger (magnitude adjustment of a likelihood: Ribatet, Cooley and Davison 2012)
    information = jacobian.T @ (jacobian / square[:, None])
    covariance = np.linalg.inv(information + np.eye(k) / PRIOR**2)
    pulls = np.stack([np.bincount(window, weights=c) for c in (jacobian * (r / square)[:, None]).T], axis=1)
    pulls = pulls[np.abs(pulls).sum(axis=1) > 0]
    if len(pulls) > 1:
        pulls = pulls - pulls.mean(axis=0)
        wider = float((pulls @ covariance * pulls).sum()) / max(float((covariance * information).sum()), 1e-12)
        wider *= len(pulls) / (len(pulls) - 1)
        few = float(student.ppf(0.95, len(pulls) - 1)) / 1.645  # Student's distribution instead of the normal one
        square *= max(wider, 1.0) * few**2
    return np.sqrt(square)


@dataclass(frozen=True)
class Cut:
    """A Gaussian cut off at bounds."""

    centre: Array
    covariance: Array
    low: Array
    high: Array

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Gibbs sampling of the parameters that bounds are near to, one chain a draw; the others follow as in the Gaussian."""
        from scipy.special import ndtr, ndtri

        x = self.centre + rng.standard_normal((n, len(self.centre))) @ _root(self.covariance).T
        spread = np.sqrt(np.diag(self.covariance))
        near = np.flatnonzero(np.minimum(self.centre - self.low, self.high - self.centre) < FAR * spread)
        if not len(near):
            return x
        low, high = self.low[near] - self.centre[near], self.high[near] - self.centre[near]
        precision = np.linalg.inv(self.covariance[np.ix_(near, near)])
        before = x[:, near] - self.centre[near]
        z = np.clip(before, low, high)
        for _ in range(SWEEPS):
            for i, row in enumerate(precision):
                width = row[i] ** -0.5
                mean = z[:, i] - z @ row / row[i]
                least, most = ndtr((low[i] - mean) / width), ndtr((high[i] - mean) / width)
                drawn = ndtri(np.clip(least + rng.random(n) * (most - least), 1e-300, 1 - 1e-16))
                z[:, i] = np.clip(mean + width * drawn, low[i], high[i])
        return np.clip(x + (z - before) @ precision @ self.covariance[near], self.low, self.high)

    def log_density(self, x: Array) -> Array:
        """Up to a constant."""
        return -0.5 * (_solve(_root(self.covariance), x - self.centre) ** 2).sum(axis=1)


def weighted(p: Problem, n: int, rng: np.random.Generator, tick: Tick = quiet) -> tuple[Array, Array, list[str]]:
    """Importance sampling from a Gaussian that improves (population Monte Carlo): draws, their weights, warnings."""
    centre, covariance = p.gaussian()
    k = len(centre)
    wider = 1 + TAILS / np.sqrt(k)
    ideal = n * (np.sqrt(2 * wider - 1) / wider) ** k  # as many particles count if the posterior is a Gaussian
    best, mean, spread, known = (-np.inf, np.empty(0), np.empty(0)), np.zeros(k), np.zeros((k, k)), 0.0
    for turn in range(ROUNDS):
        near = Cut(centre, wider * covariance, p.low, p.high)
        x = near.sample(n, rng)
        log_w = p.log_density(x, tick, f"particles, round {turn + 1}") - near.log_density(x)
        best = max(best, (_effective(_weights(log_w)), x, log_w), key=lambda tried: tried[0])
        if best[0] > GOOD * ideal:
            break
        w = _weights(_power(log_w, SANE * n) * log_w)
        # what all rounds say about the posterior, each as much as it has particles that count
        share = _effective(w) / (known + _effective(w))
        known += _effective(w)
        new_mean, new_spread = _moments(x, w)
        mean, spread = (1 - share) * mean + share * new_mean, (1 - share) * spread + share * new_spread
        # the Gaussian changes as the draws that were cut from it must; a covariance of few particles changes it less
        was, few = _moments(x), k / (k + known)
        change = _root((1 - few) * spread + few * was[1]) @ np.linalg.inv(_root(was[1]))
        centre, covariance = centre + mean - was[0], change @ near.covariance @ change.T
    effective, x, log_w = best
    power = _power(log_w, SANE * n)
    words = f"only {effective:.0f} of {n} particles count, as the posterior is far from any Gaussian"
    words += f"; their weights were evened out (to the power {power:.2g}): use --method posterior"
    return x, _weights(power * log_w), [] if power == 1.0 else [words]


def learnt(
    p: Problem, simulations: int, n: int, rng: np.random.Generator, tick: Tick = quiet
) -> tuple[Array, Array, list[str]]:
    """Neural posterior estimation: draws, their weights, warnings.

    Logs are summed up by the parameters that one Gauss-Newton step finds from them, which is all they say if errors are linear.
    The size of what is left says nothing more: it is where the noise of the simulations comes from. The network learns by how
    much, and how surely, a linear guess from this summary is wrong. Beyond bounds errors go on linearly, so that it sees none;
    what it says beyond them is cut off.
    """
    k = len(p.start)
    centre, covariance = p.gaussian()
    information = p.jacobian.T @ p.jacobian
    step, root = covariance, _root(covariance)  # the root gives the units in which everything is learnt
    noise = np.linalg.cholesky(information + (1e-12 * np.trace(information) + 1e-30) * np.eye(k))

    def summary(pull: Array) -> Array:
        """What a Gauss-Newton step finds, after a 1 for the linear guess. pull: errors times slopes, (logs, parameters)."""
        return np.column_stack([np.ones(len(pull)), _solve(root, pull @ step)])

    seen = summary(-p.residual[None] @ p.jacobian)
    reach = np.minimum(FAR * WIDE * np.sqrt(np.diag(covariance)), (p.high - p.low) / 4)
    first = round(PILOT * simulations)
    for words, count in (("posterior, where to look", first), ("posterior", simulations - first)):
        x = Cut(centre, WIDE**2 * covariance, p.low - reach, p.high + reach).sample(count, rng)
        inside = np.clip(x, p.low, p.high)
        pull = p.over(inside, lambda e: (e - p.residual) @ p.jacobian, tick, words) + (x - inside) @ information
        x, pull = np.repeat(x, COPIES, axis=0), np.repeat(pull, COPIES, axis=0)
        summaries = summary(pull + rng.standard_normal(x.shape) @ noise.T)
        guess = np.linalg.lstsq(summaries, x, rcond=None)[0]
        wrong = _solve(root, x - summaries @ guess)
        centre, covariance = (seen @ guess)[0], root @ _moments(wrong)[1] @ root.T
    tick(f"posterior: a network learns from {count} simulations")
    drawn, density = learn_flow(wrong, summaries[:, 1:], seen[:, 1:], n, int(rng.integers(2**31)))
    # parameters were drawn from a Gaussian, not evenly, which makes what is learnt narrower by this factor
    narrow, middle = np.sqrt(1 - 1 / WIDE**2), drawn.mean(axis=0)
    y = seen @ guess + (middle + (drawn - middle) / narrow) @ root.T

    def log_density(y: Array) -> Array:
        return density(middle + (_solve(root, y - seen @ guess) - middle) * narrow)

    mean, spread = _moments(summaries[:, 1:])
    out = [(_solve(_root(spread), t[:, 1:] - mean) ** 2).sum(axis=1) for t in (summaries, seen)]
    strange = float((out[0] > out[1]).mean()) < STRANGE
    doubt = "no simulation is like the logs, so that what the network learnt does not hold for them: the fit may be far off"
    return _within(y, log_density, p.low, p.high, rng), np.full(n, 1 / n), [doubt] if strange else []


def _within(y: Array, log_density: Callable[[Array], Array], low: Array, high: Array, rng: np.random.Generator) -> Array:
    """The draws if none is out of bounds; else a Metropolis chain from each, those outside started from a Gaussian cut off."""

    def inside(y: Array) -> NDArray[np.bool_]:
        return np.asarray(((y >= low) & (y <= high)).all(axis=1))

    if inside(y).all():
        return y
    n, k = y.shape
    x = np.where(inside(y)[:, None], y, Cut(*_moments(y), low, high).sample(n, rng))
    root = 2.4 / np.sqrt(k) * _root(_moments(x)[1])  # the best length of a step: Gelman, Roberts and Gilks 1996
    density = log_density(x)
    for _ in range(STEPS * k):
        tried = x + rng.standard_normal((n, k)) @ root.T
        its_density = np.where(inside(tried), log_density(tried), -np.inf)
        taken = np.log(rng.random(n)) < its_density - density
        x, density = np.where(taken[:, None], tried, x), np.where(taken, its_density, density)
    return x


def _power(log_w: Array, wanted: float) -> float:
    """The largest power up to 1 of the weights that leaves as many effective particles as wanted."""
    from scipy.optimize import brentq

    def lacking(power: float) -> float:
        return wanted - _effective(_weights(power * log_w))

    return float(brentq(lacking, 0.0, 1.0)) if lacking(1.0) > 0 else 1.0


def _weights(log_w: Array) -> Array:
    w = np.exp(log_w - log_w.max())
    return np.asarray(w / w.sum())


def _effective(w: Array) -> float:
    return 1.0 / float(w @ w)


def _moments(x: Array, weights: Array | None = None) -> tuple[Array, Array]:
    """Mean and covariance."""
    return np.average(x, axis=0, weights=weights), np.atleast_2d(np.cov(x.T, bias=True, aweights=weights))


def _root(covariance: Array) -> Array:
    """Lower triangular."""
    return np.asarray(np.linalg.cholesky(covariance + 1e-12 * np.diag(np.diag(covariance))), float)


def _solve(root: Array, rows: Array) -> Array:
    """Rows in units of a root."""
    return np.asarray(np.linalg.solve(root, rows.T).T, float)
