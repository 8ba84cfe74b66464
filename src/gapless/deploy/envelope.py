"""Before the first command: is the robot where the policy was trained to start, alone on its bus, ready, and fast enough?"""

import time
from collections.abc import Sequence

import numpy as np

from gapless.deploy.limits import Limits
from gapless.deploy.link import Link
from gapless.errors import BadInput
from gapless.policy import Contract
from gapless.report import few
from gapless.robots import RobotModel
from gapless.rotations import up_of

POSTURE = 0.9
"""rad (m) from the policy's default pose within which a robot may begin its slow move there; as far as a sitting robot is."""
SLOWEST = 0.005
"""s between two commands beyond which the safety layer comes too late: attacked with 10 ms, limits were exceeded."""
STILL = 0.5
"""rad/s of any joint, and of the base, below which a robot stands still."""
LEAN = np.radians(25.0)
"""rad that the base may lean before the start."""
LOOKED = 0.25
"""s for which a robot is looked at before the first command."""
FACTOR = (0.9, 1.1)
"""Least and largest real-time factor of a simulated robot."""
BAD_MODES = ("stopped", "fallback", "fault", "sport", "other")
"""What a robot says that it does while it is not ours to command."""


def refusals(link: Link, model: RobotModel, contract: Contract, limits: Limits) -> list[str]:
    """Sentences that say why the robot may not be started; none where it may. Nothing is sent."""
    out: list[str] = []
    if link.realtime:
        link.look()  # what waited since the line was opened may be seconds old
    first, began, count, seen = None, time.monotonic(), 0, link.time
    patience = began + 5.0
    while time.monotonic() < patience and (first is None or (link.realtime and time.monotonic() - began < LOOKED)):
        if link.look():
            if first is None:
                first, began = link.time, time.monotonic()
            count, seen = count + 1, link.time
        if link.realtime:
            time.sleep(link.period / 4)
    if first is None:
        return [f"it sends no readings that can be used{f' ({link.trouble})' if link.trouble else ''}"]
    if not link.senses_base:
        out.append("it sends no quat and gyro, and a robot whose base moves needs an IMU: add them to its readings")
    if link.realtime:
        factor = (seen - first) / max(time.monotonic() - began, 1e-9)
        if not FACTOR[0] <= factor <= FACTOR[1]:
            out.append(f"its clock runs at {factor:.2f} of real time: run the simulation at the speed of a real robot")
    if link.mode in BAD_MODES:
        out.append(f"its mode is {link.mode!r}: let a person look at it and start it anew")
    if link.others():
        out.append("another program sends commands to it: stop that program first")
    if not (np.isfinite(link.q).all() and np.isfinite(link.dq).all() and np.isfinite(link.imu).all()):
        return [*out, "its readings are not finite"]
    default = dict(zip(contract.joints.names, contract.joints.default_pos or (), strict=False))
    off = {j: abs(q - default[j]) for j, q in zip(model.joints, link.q, strict=True) if j in default}
    far = [f"{j} is {by:.2f} rad off" for j, by in off.items() if by > POSTURE]
    if far:
        out.append(f"its posture is not near the policy's default pose ({few(far)}): move it there")
    quick = [j for j, v in zip(model.joints, link.dq, strict=True) if abs(v) > STILL]
    if quick:
        out.append(f"it moves ({few(quick)}): let it come to rest")
    if len(link.imu) and link.senses_base:
        lean = float(np.arccos(np.clip(up_of(link.imu[None, :4])[0, 2], -1.0, 1.0)))
        if lean > LEAN:
            out.append(f"it leans by {np.degrees(lean):.0f} deg: set it upright")
        if np.abs(link.imu[4:]).max() > STILL:
            out.append("its base turns: let it come to rest")
    if not link.battery >= limits.battery:
        out.append(f"its battery has {link.battery:.1f} V, and {limits.battery:.1f} V are needed: charge it")
    return out


def suits(link: Link, contract: Contract) -> None:
    """Raise unless the robot's rate and gains can be what the contract asks for."""
    period = contract.timing.control_dt
    if period is None:
        raise BadInput("the contract does not say the policy's period (timing.control_dt)")
    ticks = period / link.period
    if ticks < 0.999 or abs(ticks - round(ticks)) > 0.01 * ticks:
        raise BadInput(
            f"the policy runs every {period:g} s, and a robot that is commanded every {link.period:g} s cannot keep that time"
        )
    if link.period > SLOWEST:
        raise BadInput(
            f"the robot is commanded every {1e3 * link.period:g} ms, and limits can be kept for it only from every "
            f"{1e3 * SLOWEST:g} ms on: command it faster"
        )
    if contract.joints.gain_unit != "Nm":
        raise BadInput("the policy's gains are in shares of the supply, and live drives take N m/rad: state them so")
    for gain, most in getattr(link.robot, "most_gains", {}).items():
        asked = max(getattr(contract.joints, gain) or (0.0,))
        if asked > most:
            raise BadInput(f"the policy asks for {gain} = {asked:g}, and the robot's drives take {most:g} at most")
    if contract.action.kind == "position" and not (contract.joints.kp and contract.joints.kd):
        raise BadInput("the contract does not say the gains (joints.kp, joints.kd) that the drives are to have")


def together(sentences: Sequence[str]) -> BadInput:
    """One sentence for all that is wrong before the start."""
    return BadInput(f"the robot is not started: {'; '.join(sentences)}")
