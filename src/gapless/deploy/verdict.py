"""Whether a policy may run on a robot: only one whose check was passed, for this network and this robot."""

from pathlib import Path

from gapless.check import PolicyCheck
from gapless.errors import BadInput
from gapless.policy import Policy

FILE = "verdict.json"


def require_pass(policy: Policy, folder: Path, robot: str) -> None:
    """Raise unless the folder holds a passed verdict about this very network and robot."""
    how = f"run `gapless check POLICY --robot {robot} --out {folder}` first, or take the risk with --unchecked"
    if not (folder / FILE).is_file():
        raise BadInput(f"{folder}: the policy has no verdict; {how}")
    how = how.replace(" first", " --overwrite first")
    check = PolicyCheck.load(folder)
    if check.outcome != "pass":
        raise BadInput(f"{folder}: the policy's verdict is {check.outcome!r} ({check.finding or 'undecided'}); {how}")
    if check.sha256 != policy.sha256:
        raise BadInput(f"{folder}: the verdict is about another network than the one that would run; {how}")
    if check.robot != robot:
        raise BadInput(f"{folder}: the verdict is about {check.robot or 'no robot'}, and this is {robot}; {how}")
