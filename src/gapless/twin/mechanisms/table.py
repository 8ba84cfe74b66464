"""Table: a surface that a point of the robot touches though the model knows nothing of it, springy as real ones are."""

from collections.abc import Mapping
from dataclasses import dataclass

import mujoco
import numpy as np

from gapless.errors import unknown
from gapless.twin.mechanism import Bound, Fields, Mechanism, Quantity, Values

TABLE, TIP = "gapless_table", "gapless_tip"
IMPEDANCE = 0.9  # constant over depth, so that the spring is linear
AWAY = 10.0  # m: below anything a robot reaches, so that an absent table touches nothing
HEIGHT, STIFFNESS = Quantity("table.height", "m"), Quantity("table.stiffness", "N/m")
POINT = tuple(Quantity(f"table.{axis}", "m") for axis in "xyz")


@dataclass(frozen=True)
class Table(Mechanism):
    """A level surface at a height [m], and the point of a link [m, in its frame] that meets it with a stiffness [N/m].

    The stiffness is that of everything that gives: surface, gripper, arm. It is slippery. A table at -10 m, the nominal one, is
    none.
    """

    quantities = (HEIGHT, STIFFNESS, *POINT)
    link: str
    point: tuple[float, float, float]
    stiffness: float = 300.0

    def install(self, spec: mujoco.MjSpec, home: Mapping[str, float]) -> None:
        names = [b.name for b in spec.bodies]
        if self.link not in names:
            raise unknown("link", self.link, names[1:])
        quiet = {"contype": 0, "conaffinity": 0, "mass": 0.0, "group": 4}
        spec.worldbody.add_geom(
            name=TABLE,
            type=mujoco.mjtGeom.mjGEOM_PLANE,
            size=[0, 0, 0.05],
            pos=[0, 0, -AWAY],
            contype=0,
            conaffinity=0,
            group=4,
        )
        spec.body(self.link).add_geom(
            name=TIP, type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[0.001, 0, 0], pos=list(self.point), **quiet
        )
        impedance = [IMPEDANCE, IMPEDANCE, 0.001, 0.5, 2]
        spec.add_pair(geomname1=TABLE, geomname2=TIP, condim=1, solimp=impedance)
        spec.option.disableflags &= ~int(mujoco.mjtDisableBit.mjDSBL_CONTACT)

    def bind(self, model: mujoco.MjModel) -> Bound:
        table, tip = model.geom(TABLE).id, model.geom(TIP).id
        pair = next(p for p in range(model.npair) if {model.pair_geom1[p], model.pair_geom2[p]} == {table, tip})
        # the engine's contact spring is an acceleration; this is what a newton does to the point (invweight of its link)
        give = float(model.body_invweight0[model.geom_bodyid[tip], 0])
        parameters = [
            HEIGHT.amount("", -AWAY, 0.01, 0.001, -AWAY, AWAY),
            STIFFNESS.factor("", self.stiffness, 2.0, 0.3, span=100.0),
            *(p.amount("", x, 0.01, 0.001, x - 0.3, x + 0.3) for p, x in zip(POINT, self.point, strict=True)),
        ]

        def apply(fields: Fields, values: Values) -> None:
            fields["geom_pos"][:, table, 2] = values["table.height"][:, 0]
            for i, p in enumerate(POINT):
                fields["geom_pos"][:, tip, i] = values[p.name][:, 0]
            # static force per metre is (engine's stiffness) / (give (1 - impedance)); damped critically
            spring = values["table.stiffness"][:, 0] * give * (1 - IMPEDANCE)
            fields["pair_solref"][:, pair, 0] = -spring
            fields["pair_solref"][:, pair, 1] = -2 * np.sqrt(spring)

        return Bound(parameters, apply)
