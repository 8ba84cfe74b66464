"""Quantities: whatever a mechanism has as a parameter it also declares, with what the rest of the program asks about it."""

import pytest

from gapless.twin import (
    DC,
    MECHANISMS,
    Backlash,
    Contact,
    Disturbance,
    Flex,
    Friction,
    Inertia,
    Latency,
    Motor,
    Table,
    Twin,
    quantities,
)

TWINS = {
    "quadruped": [Friction(full=True), Backlash("*_calf"), Flex("*_thigh", stiffness=50.0), Contact(step_at=1.0)],
    "arm": [Inertia(tensor="*"), Disturbance(wind=True), Latency(buses={"all": "*"}), Table("hand", (0.0, 0.0, 0.1))],
    "bench": [Motor(dc=DC(0.36, 5.8, 12.0, 2.0, 10.0))],
}


@pytest.fixture(scope="module", params=TWINS)
def twin(request) -> Twin:
    return Twin.load(request.param, add=TWINS[request.param])


def test_every_parameter_is_declared_by_its_mechanism_and_has_its_unit(twin):
    for mechanism, bound in zip(twin.mechanisms, twin.bound, strict=True):
        declared = {q.name: q.unit for q in mechanism.quantities}
        for p in bound.parameters:
            assert declared[p.quantity] == p.unit
            assert p.quantity.partition(".")[0] == type(mechanism).__name__.lower()


def test_every_cause_says_what_to_do_about_it(twin):
    causes = {quantities.cause(p.name) for p in twin.space.parameters} - {None}
    plain = quantities.remedy("nothing.known")
    silent = {c for c in causes if quantities.remedy(c) == plain}
    assert not {c for c in silent if not c.startswith(("table.", "disturbance.wind", "motor.heating", "inertia.tensor"))}


def test_what_no_prediction_depends_on_is_neither_a_cause_nor_fitted():
    for kind in MECHANISMS.values():
        for quantity in kind.quantities:
            assert quantity.predicted or (quantity.cause is None and not quantity.rungs and not quantity.standing)


def test_the_ladder_starts_with_what_every_drive_has():
    rungs = list(quantities.rungs().values())
    assert {"gains.kp", "gains.kd", "latency.action", "armature.inertia"} <= set(rungs[0])
    assert set(rungs[1]) == {"friction.viscous", "friction.coulomb"}
    assert [r[0] for r in quantities.standing_rungs().values()][2:] == [
        "inertia.payload",
        "offset.imu_roll",
        "contact.friction",
    ]


def test_a_parameter_is_looked_up_with_its_joint_and_an_unknown_one_has_no_facts():
    assert quantities.of("friction.coulomb/knee").exported == "dry"
    assert quantities.cause("inertia.com_x/trunk") == "inertia.com"
    assert quantities.cause("my.thing/knee") == "my.thing" and not quantities.of("my.thing/knee").rungs


def test_the_mechanisms_of_the_folder_are_found():
    assert {"Armature", "Backlash", "Flex", "Friction", "Latency", "Table"} <= set(MECHANISMS)
