"""What the mechanisms say about their quantities, looked up by name: every table elsewhere is made from here.

of("friction.coulomb/knee").shows
rungs()["+ viscous and Coulomb friction"]
"""

from gapless.twin.mechanism import DRIVE, PLAIN_FRICTION, STANDING_DRIVE, STANDING_FRICTION, Quantity
from gapless.twin.mechanisms import MECHANISMS

_ALL = {quantity.name: quantity for kind in MECHANISMS.values() for quantity in kind.quantities}


def of(parameter: str) -> Quantity:
    """The quantity of a parameter (`friction.coulomb/knee`); one that no mechanism declares has no facts."""
    name = parameter.partition("/")[0]
    return _ALL.get(name, Quantity(name))


def cause(parameter: str) -> str | None:
    """The cause that a parameter is part of; None where it is no cause."""
    quantity = of(parameter)
    return quantity.name if quantity.cause == "" else quantity.cause


def stood_for(parameter: str) -> tuple[str, ...]:
    """Parameters that a fit puts into this one, as no position tells them apart."""
    _, slash, place = parameter.partition("/")
    return tuple(name + slash + place for name in of(parameter).stands_for)


def remedy(name: str) -> str:
    """What to do about a cause."""
    return next((q.remedy for q in _ALL.values() if q.remedy and cause(q.name) == name), "set {name} to {value}")


def separated(one: str, other: str) -> str:
    """The motion that tells two causes apart."""
    pairs = ((q.separated, a, b) for q in _ALL.values() for a, b in ((one, other), (other, one)) if cause(q.name) == a)
    stated = (how[b] for how, _, b in pairs if b in how)
    return next(stated, "record richer motion: fast, slow, large jumps, with and without load")


def rungs() -> dict[str, tuple[str, ...]]:
    """Rungs of the ladder of single joints and of the full model, and the quantities that each fits; the plain ones first."""
    pairs = [(rung, q.name) for q in _ALL.values() for rung in q.rungs]
    return _grouped(sorted(pairs, key=lambda pair: pair[0] not in (DRIVE, PLAIN_FRICTION)))


def standing_rungs() -> dict[str, tuple[str, ...]]:
    """Rungs of a robot on its feet, in the order in which they are tried, and the quantities that each fits."""
    return _grouped([(q.standing, q.name) for q in _ALL.values() if q.standing])


def of_any_drive() -> tuple[str, ...]:
    """What is uncertain about any drive: gains, delay, armature, viscous and Coulomb friction."""
    steps = standing_rungs()
    return steps[STANDING_DRIVE] + steps[STANDING_FRICTION]


def of_how_drives_hold() -> tuple[str, ...]:
    """What shows in how drives hold a robot up: gains, delay, viscous and Coulomb friction, but no rotor."""
    return standing_rungs()[STANDING_DRIVE] + rungs()[PLAIN_FRICTION]


def ranges(preset: str) -> dict[str, tuple[str, float, float]]:
    """Quantity to what a preset of randomisation draws; see `Quantity.ranges`."""
    return {q.name: q.ranges[preset] for q in _ALL.values() if preset in q.ranges}


def exported() -> dict[str, str]:
    """What a training framework's drive has (kp, dry ...) to the quantity that is it."""
    return {q.exported: q.name for q in _ALL.values() if q.exported}


def _grouped(pairs: list[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    return {key: tuple(name for k, name in pairs if k == key) for key, _ in pairs}
