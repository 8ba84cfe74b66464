"""Robots by address: what `gapless run --robot` takes, and the robot behind it."""

import importlib.util
import re
from pathlib import Path
from typing import Any

from gapless import checks
from gapless.deploy.can_robot import CanRobot, load_can, open_buses
from gapless.deploy.emulated import Emulated, InProcess
from gapless.deploy.udp import UdpRobot
from gapless.deploy.unitree import UnitreeRobot
from gapless.errors import BadInput
from gapless.files import refusing, within
from gapless.worlds import load_standin

FORMS = "udp://HOST:PORT, standin:SPEC.toml, can:CONFIG.toml, unitree:go2, unitree:g1 or a Python file with `connect()`"


def connect(address: str) -> Any:
    """The live robot at an address. Nothing is commanded yet.

    udp://127.0.0.1:7447   a robot that `gapless standin SPEC --serve` or another program of ours serves
    standin:secret.toml    a stand-in in this process, as quickly as it goes
    can:robot.toml         MIT drives on a CAN bus
    unitree:go2@0/eth0     a Unitree robot over DDS, by domain and network interface
    my_robot.py            a file of your own, with a function `connect()` that returns the robot
    """
    kind, _, rest = address.partition(":")
    if kind == "udp":
        match = re.fullmatch(r"//([\w.-]+):(\d{1,5})", rest)
        if match is None or not 0 < int(match[2]) < 65536:
            raise BadInput(f"{address}: an address over UDP reads udp://HOST:PORT")
        return UdpRobot(match[1], int(match[2]))
    if kind == "standin" and rest:
        return InProcess(Emulated(load_standin(rest)))
    if kind == "can" and rest:
        config = load_can(rest)
        return CanRobot(config, open_buses(config))
    if kind == "unitree":
        match = re.fullmatch(r"(\w+)(?:@(\d{1,3}))?(?:/(\w+))?", rest)
        if match is None:
            raise BadInput(f"{address}: a Unitree robot reads unitree:go2, unitree:go2@DOMAIN or unitree:go2@DOMAIN/INTERFACE")
        return UnitreeRobot(match[1], int(match[2] or 0), match[3] or "lo")
    if address.endswith(".py"):
        return _own(Path(address))
    raise BadInput(f"{address}: no robot is there; an address is {FORMS}")


def _own(path: Path) -> Any:
    """The robot of a user's own file."""
    if not path.is_file():
        raise BadInput(f"{path}: there is no such file")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise BadInput(f"{path}: cannot be loaded ({type(error).__name__}: {error})") from None
    if not callable(getattr(module, "connect", None)):
        raise BadInput(f"{path}: needs a function `connect()` that returns a robot with joints, period, read, write and stop")
    with refusing(f"{path}: its connect() failed", Exception):
        robot = module.connect()
    missing = [name for name in ("joints", "period", "read", "write", "stop") if not hasattr(robot, name)]
    if missing:
        raise BadInput(f"{path}: its robot has no {', '.join(missing)}")
    with within(path):
        checks.number(robot.period, "period", 1e-4, 1.0)
        checks.names(list(robot.joints), "joints")
    return robot
