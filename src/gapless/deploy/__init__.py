"""Deploy: run a policy on a robot at its rate, watched, limited and recorded.

    from gapless.deploy import run
    print(run(policy, "udp://127.0.0.1:7447", command=(0.5, 0.0, 0.0), verdict=Path("runs/walk")))

Between any policy and any robot stands the safety layer: limits from the model, plausible readings, a ladder of fallbacks, and
a stop that only a person releases. The robot's side of a stand-in is here too (`Emulated`), and it counts for itself whether
any limit was exceeded.
"""

from gapless.deploy.adaptive import Adaptive
from gapless.deploy.address import connect
from gapless.deploy.beside import beside
from gapless.deploy.can_motors import CanMotors, OnVirtualBus
from gapless.deploy.can_robot import CanConfig, CanRobot, Imu as CanImu, load_can
from gapless.deploy.clamp import HITS, clamp
from gapless.deploy.deploying import run
from gapless.deploy.drive import AUDITED
from gapless.deploy.emulated import Emulated, InProcess
from gapless.deploy.frames import PolicyFrames, read_policy_frames
from gapless.deploy.fuzz import fuzzed_packet
from gapless.deploy.ladder import WHY, Ladder, Rung
from gapless.deploy.limits import Limits, limits_of
from gapless.deploy.link import Link
from gapless.deploy.mit import Ranges as MitRanges, decode as decode_mit, encode as encode_mit
from gapless.deploy.packets import LARGEST as LARGEST_PACKET
from gapless.deploy.plausible import Fault, Plausible
from gapless.deploy.realtime import Pace, Times, claim, undisturbed
from gapless.deploy.recording import Channel, Recorder
from gapless.deploy.result import Run
from gapless.deploy.runner import Runner
from gapless.deploy.safety import Safety
from gapless.deploy.serve import PORT, Line, Server
from gapless.deploy.soft import Move
from gapless.deploy.steer import Steer
from gapless.deploy.udp import UdpRobot
from gapless.deploy.unitree import JOINTS as UNITREE_JOINTS, UnitreeRobot
from gapless.deploy.unitree_standin import UnitreeStandIn
from gapless.deploy.verdict import require_pass
from gapless.deploy.view import LOCAL, View
from gapless.deploy.watch import Envelope, Watch, envelope_of
