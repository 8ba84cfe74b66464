"""Amortised posterior: one network for all robots of a prior, learnt once for a motion; a log then gives its belief at once.

    known = learn_amortised(twin, plan_motion("rich", twin, 10.0, rng), rng)
    known.save("posterior.npz")
    belief = known.belief(log, np.random.default_rng(0))      # in less than a second

BayesSim (Ramos et al. 2019): robots are drawn from a prior and told the motion, what they measure is summed up, and a flow
learns the parameters given the summary. What is not asked for is as wrong as models are, so that it counts as uncertainty. Such
networks are too sure of themselves (Hermans et al. 2022): draws are spread until regions hold the truth of robots held out.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gapless.arrays import Array
from gapless.errors import BadInput
from gapless.files import atomic, check_zip, refusing, within
from gapless.identify.flow import Flow, train_flow
from gapless.identify.walking.numbers import Numbers
from gapless.logs import Log
from gapless.twin import Gaussian, Particles, Space, Twin, quantities
from gapless.worlds import Worlds, common_signal

SIMULATIONS, COMPONENTS = 3000, 40
"""Robots that are learnt from, and numbers that sum up what one measured."""
SIZE, EPOCHS = (64, 4), 120
"""Hidden units and layers of the flow, and epochs at most."""
DRAWS = 1000
NOISE = 0.0005
"""Of measured positions [rad]; a larger one is drawn for some robots."""
SAME = 0.02
"""Share of how much a command moves by which a log's commands may differ from those that the network knows."""
TESTED = 200
"""Robots that are held out, by which draws are spread."""
DOUBT = 1.0
"""Real mismatches, in standard deviation, by which all else is off in the robots that are learnt from."""
REGION = 0.9
MOST_BYTES, MOST_UNITS, MOST_LAYERS = 1 << 28, 1024, 32
"""Of a file, and of a flow in one that comes from elsewhere."""


@dataclass(frozen=True)
class Calibration:
    """Whether a posterior means what it says, on robots whose numbers are known."""

    covered: float
    """Share of the robots whose 90 % region (an ellipsoid) holds the truth."""
    intervals: Array
    """The same of each parameter's 90 % interval. Shape: (parameters,)."""
    ranks: Array
    """Share of the draws below the truth, which is uniform if all is right. Shape: (robots, parameters)."""
    gain: float
    """Median logarithm of the density at the truth, above the prior's [nats]."""

    def uniform(self) -> Array:
        """Probability of ranks as uneven as these if all were right (Kolmogorov and Smirnov). Shape: (parameters,)."""
        from scipy.stats import kstest

        return np.array([kstest(column, "uniform").pvalue for column in self.ranks.T])


@dataclass(frozen=True)
class Amortised:
    """A network that knows the posterior of a motion, for all robots of its prior."""

    space: Space
    spread: float
    """Standard deviation of the prior about the model, in units of a real mismatch."""
    motion: Array
    """What the joints were told. Shape: (periods, joints)."""
    centre: Array
    along: Array
    size: Array
    """Principal components of what robots measured."""
    flow: Flow
    widened: float = 1.0
    """Times that draws are spread about their mean."""

    def summary(self, q: Array) -> Array:
        """What sums up measured positions (n, periods, joints). Shape: (n, numbers)."""
        return np.asarray((q.reshape(len(q), -1) - self.centre) @ self.along.T / self.size)

    def draws(self, q: Array, n: int, seed: int) -> Array:
        """Scaled draws given what one robot measured, (periods, joints). Shape: (n, parameters)."""
        drawn = self.flow.sample(self.summary(q[None]), n, seed)
        middle = drawn.mean(axis=0)
        return self.space.mirrored(middle + self.widened * (drawn - middle))

    def belief(self, twin: Twin, log: Log, rng: np.random.Generator, n: int = DRAWS) -> Particles:
        """What a log of the motion leaves possible; a log of another motion is refused."""
        drawn = self.draws(self.measured(twin, log), n, int(rng.integers(2**31)))
        return Particles(self.space, self.space.clip(self.space.from_scaled(drawn)), np.full(n, 1 / n))

    def measured(self, twin: Twin, log: Log) -> Array:
        """Positions at the network's periods, from when the motion begins. Shape: (periods, joints)."""
        told = f"{common_signal(twin)}_cmd"
        if lacks := [s for s in ("q", told) if s not in log]:
            raise BadInput(f"{log.name}: an amortised posterior needs the signal {lacks[0]}, and the log has none")
        time = log["q"].time[0] + twin.control_dt * np.arange(len(self.motion) + 1)
        if time[-1] > log["q"].time[-1] + 1e-6:
            have = log["q"].time[-1] - log["q"].time[0]
            raise BadInput(f"{log.name}: lasts {have:.1f} s, and the network knows a motion of {time[-1] - time[0]:.1f} s")
        q, sent = (log.at(s, t)[:, [log[s].columns.index(j) for j in twin.joints]] for s, t in (("q", time), (told, time[:-1])))
        off = np.sqrt(np.mean((sent - self.motion) ** 2)) / max(float(self.motion.std()), 1e-6)
        if off > SAME:
            raise BadInput(f"{log.name}: not the motion that the network knows ({off:.0%} off): record that one, or learn anew")
        return q[1:]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one NPZ file of plain arrays."""
        arrays = {f"flow/{name}": array for name, array in self.flow.arrays().items()}
        arrays |= {"names": np.array(self.space.names), "spread": np.array(self.spread), "motion": self.motion}
        arrays |= {"centre": self.centre, "along": self.along, "size": self.size, "layers": np.array(self.flow.size)}
        arrays["widened"] = np.array(self.widened)
        with atomic(Path(path)) as part, part.open("wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]

    @classmethod
    def load(cls, path: str | os.PathLike[str], twin: Twin) -> Amortised:
        """Read what `save` wrote, for the robot that it was learnt for; nothing in the file is run."""
        path = Path(path)
        check_zip(path).close()
        if path.stat().st_size > MOST_BYTES:
            raise BadInput(f"{path}: larger than {MOST_BYTES >> 20} MB, which no network of a posterior is")
        # zipfile, zlib and numpy each have their own errors for damaged data
        with refusing(f"{path}: not a network of a posterior", Exception), np.load(path, allow_pickle=False) as held:
            names = tuple(map(str, held["names"].tolist()))
            table = {name: held[name].astype(float) for name in held.files if name != "names"}
            units, layers = (int(x) for x in table.pop("layers"))
            spread, widened = (float(table.pop(name)) for name in ("spread", "widened"))
            motion, centre, along, size = (table.pop(name) for name in ("motion", "centre", "along", "size"))
        space = posterior_space(twin, names)
        with within(path):
            if motion.ndim != 2 or motion.shape[1] != len(twin.joints):
                raise BadInput(f"of another robot: it has not the {len(twin.joints)} joints of {twin.name}")
            fits = along.ndim == 2 and along.shape[1] == motion.size and centre.shape == along[0].shape
            fits = fits and size.shape == along[:, 0].shape and 1 <= units <= MOST_UNITS and 1 <= layers <= MOST_LAYERS
            numbers = (np.array([spread, widened]), motion, centre, along, size, *table.values())
            if not fits or not all(np.isfinite(each).all() for each in numbers):
                raise BadInput(
                    "not a network of a posterior: its arrays do not fit together, or have numbers that are not finite"
                )
            flow = Flow.of_arrays({name[5:]: array for name, array in table.items()}, (len(space), len(along)), (units, layers))
        return cls(space, spread, motion, centre, along, size, flow, widened)


def posterior_space(twin: Twin, names: tuple[str, ...] = ()) -> Space:
    """The numbers that are asked for: those that drives show, all unless named; raises where the robot has none such."""
    space = Numbers.of(twin, {}).space
    every = Space(tuple(p for p in space.parameters if not p.quantity.startswith("contact.")), space.fixed)
    return every.select(*names) if names else every


def measure(twin: Twin, values: Array, motion: Array, rng: np.random.Generator) -> Array:
    """What robots with parameters (n, parameters) over the twin's space measure when they are told a motion, from home.

    Shape: (n, periods, joints).
    """
    worlds = Worlds(twin, len(values), rng=rng, signals=("q",))
    worlds.write(values)
    worlds.reset(redraw=False)
    command, controls, seen = np.tile(worlds.home_command, (len(values), 1)), [d.control for d in twin.drives], []
    for told in motion:
        command[:, controls] = told
        seen.append(worlds.step(command)["q"])
    return np.stack(seen, axis=1)


def robots_of(twin: Twin, space: Space, scaled: Array, rng: np.random.Generator, doubt: float = 0.0) -> Array:
    """Robots with these numbers; all that is not asked for is off within its tolerance. Shape: (n, parameters of the twin).

    doubt: besides, causes that are not asked for are off by so many real mismatches in standard deviation.
    """
    every = twin.space
    at = every.to_scaled(twin.expand(space.clip(space.from_scaled(scaled)), space))
    own = {n for p in space.parameters for n in p.members or (p.name,)} | set(space.fixed)
    others = np.array([n not in own for n in every.names])
    stood = {other for n in own for other in quantities.stood_for(n)}  # positions do not tell them from what is asked for
    alone = others & np.array([n not in stood for n in every.names])
    causes = alone & np.array([quantities.of(n).repeatable and quantities.cause(n) is not None for n in every.names])
    at += np.where(others, rng.uniform(*every.tolerated, at.shape), 0.0)
    at += np.where(causes, doubt * rng.standard_normal(at.shape), 0.0)
    values = every.clip(every.from_scaled(every.mirrored(at)))
    noise = [i for i, n in enumerate(every.names) if n == "sensors.noise_q"]
    values[:, noise] = NOISE * np.exp(rng.uniform(-0.7, 0.7, (len(values), len(noise))))
    return values


def learn_amortised(
    twin: Twin,
    motion: Array,
    rng: np.random.Generator,
    space: Space | None = None,
    simulations: int = SIMULATIONS,
    spread: float = 1.0,
    doubt: float = DOUBT,
    tick: Callable[[str], object] = lambda text: None,
) -> Amortised:
    """Learn the posterior of a motion, for all robots of a prior.

    Args:
        twin: the robot.
        motion: what its joints are told at the control rate, (periods, joints).
        rng: same seed, same network.
        space: what is asked for; all that drives show unless given.
        simulations: robots to learn from.
        spread: of the prior about the model, in units of a real mismatch.
        doubt: by how many real mismatches all else is off, in standard deviation.
        tick: told what is being done.
    """
    space = posterior_space(twin) if space is None else space
    if simulations < max(200, 20 * len(space)):
        raise BadInput(f"a posterior of {len(space)} parameters needs at least {max(200, 20 * len(space))} simulations")
    prior = Gaussian(space, np.zeros(len(space)), spread**2 * np.eye(len(space)))
    tick(f"{simulations} simulated robots are told the motion")
    scaled = space.to_scaled(prior.sample(simulations, rng))
    q = measure(twin, robots_of(twin, space, scaled, rng, doubt), motion, rng).reshape(simulations, -1)
    whole = np.isfinite(q).all(axis=1)
    q, scaled = q[whole], scaled[whole]
    centre = q.mean(axis=0)
    _, size, along = np.linalg.svd(q - centre, full_matrices=False)
    kept = min(COMPONENTS, int((size > 1e-9 * size[0]).sum()))
    size = size[:kept] / np.sqrt(len(q))
    tick("a network learns from them")
    x, test = (q - centre) @ along[:kept].T / size, min(TESTED, len(q) // 5)
    flow = train_flow(scaled[test:], x[test:], int(rng.integers(2**31)), SIZE, EPOCHS)
    ratios = [_out(flow.sample(x[i : i + 1], DRAWS // 4, i), scaled[i]) for i in range(test)]
    widened = max(1.0, float(np.quantile(ratios, REGION)))
    return Amortised(space, spread, motion, centre, along[:kept], size, flow, widened)


def _out(drawn: Array, truth: Array) -> float:
    """How far out the truth is, over how far the ellipsoid reaches that holds 90 % of the draws."""
    middle = drawn.mean(axis=0)
    root = np.linalg.cholesky(np.cov(drawn.T).reshape(len(truth), -1) + 1e-12 * np.eye(len(truth)))
    size = np.linalg.norm(np.linalg.solve(root, (np.vstack([drawn, truth]) - middle).T), axis=0)
    return float(size[-1] / np.quantile(size[:-1], REGION))


def calibrate(known: Amortised, scaled: Array, q: Array, rng: np.random.Generator, n: int = 300) -> Calibration:
    """Whether the posterior means what it says, for robots of known numbers (robots, parameters) and what they measured."""
    from scipy.stats import norm

    inside, ranks, gains = [], [], []
    half = np.isclose(known.space.bounds[0], 0.0)  # mirrored at the model's own value: a half-Gaussian is twice as dense
    for truth, seen in zip(scaled, q, strict=True):
        x = known.summary(seen[None])
        drawn = known.flow.sample(x, n, int(rng.integers(2**31)))
        middle, by = drawn.mean(axis=0), known.widened
        inside.append(_out(drawn, truth) <= by)
        ranks.append((middle + by * (drawn - middle) < truth).mean(axis=0))
        density = float(known.flow.log_density((middle + (truth - middle) / by)[None], x)[0]) - len(truth) * np.log(by)
        gains.append(density - float(norm.logpdf(truth, scale=known.spread).sum() + half.sum() * np.log(2)))
    held = (np.array(ranks) >= 0.05) & (np.array(ranks) <= 0.95)
    return Calibration(float(np.mean(inside)), held.mean(axis=0), np.array(ranks), float(np.median(gains)))
