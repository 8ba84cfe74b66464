"""`gapless certify`: a plan of trials, and what it refuses."""

import pytest

from gapless.cli import main
from gapless.policy import save_policy
from gapless.twin import Twin


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    import numpy as np

    torch = pytest.importorskip("torch", reason="pip install 'gapless[learn]' to make a policy")
    from gapless.learn import build_contract, task_of
    from gapless.policy import onnx_of

    twin = Twin.load("quadruped")
    contract = build_contract(twin, task_of("velocity", twin))
    network = torch.nn.Linear(contract.width, 12)
    torch.nn.init.zeros_(network.weight)
    torch.nn.init.zeros_(network.bias)
    folder = tmp_path_factory.mktemp("policy")
    seen = np.ones((64, contract.width), np.float32)
    save_policy(folder, contract, onnx_of(network, contract.width), seen, np.zeros((64, 12), np.float32))
    return str(folder)


def test_a_plan_is_the_head_of_a_table(policy, capsys):
    main(["certify", policy, "--count", "4"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "vx,vy,yaw_rate,velocity_error" and len(lines) == 5 and lines[1].endswith(",")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--figure", "speed"], "unknown figure"),
        (["--count", "2"], "--count must be 3 to 1000"),
        (["--trials", "a.csv", "--on", "b.toml"], "not both"),
        (["--trials", "nowhere.csv"], "nowhere.csv"),
    ],
)
def test_bad_input_is_one_sentence(policy, capsys, given, said):
    with pytest.raises(SystemExit) as stop:
        main(["certify", policy, *given])
    assert stop.value.code == 2 and said in capsys.readouterr().err
