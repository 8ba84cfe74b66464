"""The gate: thresholds from files, answers with their intervals, and what it writes."""

import json
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from gapless.check import GateVerdict, gate, thresholds
from gapless.check.gate import Item
from gapless.cli import main
from gapless.errors import BadInput
from gapless.twin import Twin
from tests.check.made import still
from tests.data import DATA, needs_data


@pytest.fixture(scope="module")
def judged() -> GateVerdict:
    twin = Twin.load("quadruped")
    policy = still(twin)
    return gate(policy, twin, accepted=policy, runs=24)


def test_a_policy_that_stands_still_does_not_follow(judged):
    by_name = {i.name: i for i in judged.items}
    assert judged.answer == "fail" and judged.exit_code == 1 and judged.evidence == "simulation only"
    assert (
        by_name["velocity error"].answer == "fail" and "at most 0.5 of that is asked for" in by_name["velocity error"].sentence
    )
    assert by_name["survival"].answer == "inconclusive" and by_name["survival"].more
    assert (
        by_name["against the accepted one"].answer == "pass"
        and "0 runs are lost and 0 won" in by_name["against the accepted one"].sentence
    )


def test_what_it_writes_can_be_read(judged, tmp_path):
    judged.save(tmp_path)
    assert GateVerdict.load(tmp_path).json() == json.loads((tmp_path / "gate.json").read_text())
    suite = ElementTree.parse(tmp_path / "gate.xml").getroot()
    assert suite.get("tests") == str(len(judged.items)) == str(len(suite.findall("testcase")))
    assert suite.get("failures") == str(sum(i.answer == "fail" for i in judged.items)) != "0"
    assert (tmp_path / "gate.md").read_text().count("\n| ") == len(judged.items) + 1


def test_open_items_make_it_inconclusive_and_failed_ones_fail(judged):
    item = Item("x", "pass", 1, 1, 1, 1, "", None, "")
    for answers, code in ((["pass"], 0), (["pass", "inconclusive"], 3), (["inconclusive", "fail"], 1)):
        assert replace(judged, items=tuple(replace(item, answer=a) for a in answers)).exit_code == code


def test_thresholds_of_a_file_replace_the_defaults(tmp_path):
    path = tmp_path / "gate.toml"
    path.write_text("confidence = 0.95\n[velocity]\nsurvival = 0.8\n")
    mine, usual = thresholds("velocity", path), thresholds("velocity")
    assert mine == usual | {"survival": 0.8, "confidence": 0.95} and usual["survival"] == 0.95
    assert thresholds("flip") == thresholds("other")
    for wrong in (
        "[velocity]\nsurvive = 0.8",
        "[walk]\nsurvival = 0.8",
        "[velocity]\nsurvival = 'high'",
        "= 3",
        "confidence = 2",
    ):
        path.write_text(wrong)
        with pytest.raises(BadInput):
            thresholds("velocity", path)


@needs_data
@pytest.mark.parametrize(("answer", "code"), [("pass", 0), ("fail", 1), ("inconclusive", 3)])
def test_the_command_ends_as_the_gate_answers_and_writes_what_it_found(judged, tmp_path, monkeypatch, capsys, answer, code):
    asked = {}

    def stub(policy, twin, belief, engines, with_stress, limits, accepted, task, tick):
        asked.update(gains=twin.joint_table[0].kp, engines=engines, stress=with_stress, limits=limits, accepted=accepted)
        return replace(judged, items=(Item("x", answer, 1, 1, 1, 1, "", None, ""),))

    monkeypatch.setattr("gapless.check.judge", stub)
    own, policies = tmp_path / "own.toml", DATA / "policies"
    own.write_text("[velocity]\nsurvival = 0.8\n")
    words = ["check", str(policies / "unitree_rl_lab_g1"), "--robot", str(policies / "models" / "g1.xml"), "--seconds", "1"]
    words += ["--stress", "--on", "mujoco", "--accepted", words[1], "--thresholds", str(own), "--out", str(tmp_path / "out")]
    with pytest.raises(SystemExit) as exit_:
        main([*words, "--json"])
    assert exit_.value.code == code
    assert json.loads(capsys.readouterr().out)["gate"]["answer"] == answer
    assert asked["gains"] == 100.0 and asked["engines"] == ("mujoco",) and asked["stress"] and asked["accepted"]
    assert asked["limits"]["survival"] == 0.8 and (tmp_path / "out" / "gate" / "gate.xml").is_file()
