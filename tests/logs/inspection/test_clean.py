"""Nothing is reported of real logs but what is truly in them."""

from pathlib import Path

import pytest

from gapless.logs import find, read
from gapless.logs.inspection import INFO, Inspection, inspect
from tests.logs.inspection.test_planted import SO101


def codes(report: Inspection) -> set[str]:
    return {f.code for f in report.findings if f.severity != INFO}


def test_so101(data: Path) -> None:
    """Microseconds, read skew and the jaw's unit are said of all; a slip and a blocked joint of those that have them."""
    truly = {"chirp_sweep": {"slip"}, "single_joint_wrist_roll": {"stuck"}}
    for motion in find(data / "so101" / "motions"):
        report = inspect(read(motion, "so101"), SO101)
        assert codes(report) == truly.get(motion.name, set()), motion.name
        said = " ".join(f.sentence for f in report.findings if f.severity == INFO)
        assert "converted from us to s" in said and "one after the other" in said and "q/Jaw: 0..1 converted to" in said


def test_so101_slip_and_block_are_where_they_are(data: Path) -> None:
    log = read(data / "so101" / "motions" / "chirp_sweep", "so101")
    slip = next(f for f in inspect(log).findings if f.code == "slip")
    assert slip.start == pytest.approx(log["q"].time[5480], abs=4) and slip.value == pytest.approx(4 * 0.02, abs=0.025)
    log = read(data / "so101" / "motions" / "single_joint_wrist_roll", "so101")
    block = next(f for f in inspect(log).findings if f.code == "stuck")
    assert block.joint == "wrist_roll" and "-1.034" in block.sentence  # -59 deg


def test_so101_without_its_mapping_shows_that_the_jaw_is_no_angle(data: Path) -> None:
    report = inspect(read(data / "so101" / "motions" / "custom_motion"), SO101)
    assert [f.joint for f in report.findings if f.code == "scale"] == ["Jaw"]
    (other,) = [f.sentence for f in report.findings if f.code == "unknown_joint"]
    assert "none of its joints (Rotation, Pitch," in other and "is it a log of another robot?" in other


def test_go2(data: Path) -> None:
    assert codes(inspect(read(data / "go2_inair" / "go2_inair.npz", "go2_inair"))) == set()


def test_double_pendulum(data: Path) -> None:
    truly = {
        "C.0/log_01": {"gap"},  # 8.4 ms at 500 Hz
        "C.0/log_02": {"spike"},  # a velocity that leaves its neighbours by 4 rad/s
        "C.0/log_07": {"jitter", "chatter"},  # 0.5 ms of 1.6 ms; the controller swings over +-8 Nm
        "C.0/log_08": {"jitter", "chatter"},
    }
    for path in find(data / "double_pendulum"):
        if path.suffix == ".gz":
            name = f"{path.parent.name[-3:]}/{path.name.split('.')[0]}"
            assert codes(inspect(read(path, "double_pendulum"))) == truly.get(name, set()), name


def test_xl330(data: Path) -> None:
    """The servo stands in its friction, its drive is at its limit, and it is read faster while it is off."""
    for path in find(data / "xl330" / "logs"):
        found = codes(inspect(read(path, "xl330")))
        assert found <= {"stuck", "saturated", "jitter"}, path.name
        assert ("jitter" in found) == ("lift_and_drop" in path.name)
        assert ("saturated" in found) == ("kp800" in path.name), "only the stiffest gain reaches the limit of 885"


def test_simple_pendulum(data: Path) -> None:
    truly = {"energy_shaping": set(), "gravity_compensation": {"gap"}, "pd_chatter": {"chatter"}}
    for name, expected in truly.items():
        assert codes(inspect(read(data / "simple_pendulum" / "logs" / name, "simple_pendulum"))) == expected, name
