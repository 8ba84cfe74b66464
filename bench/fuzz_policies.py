"""Damaged policies: a thousand contracts, YAML and ONNX files that must give a finding or one sentence, never a crash.

python -m bench.fuzz_policies [--cases 1000] [--seed 1]
"""

import argparse
import json
import tempfile
from pathlib import Path

import numpy as np
import onnx

from bench.check import DATA
from gapless.check import check
from gapless.errors import BadInput
from gapless.policy import read_policy
from gapless.robots import load_robot


def linear(width: int, outputs: int, metadata: dict[str, str] | None = None) -> bytes:
    """A network of one matrix."""
    weight = np.random.default_rng(0).normal(0, 0.1, (width, outputs)).astype(np.float32)
    ports = [onnx.helper.make_tensor_value_info(n, 1, [1, s]) for n, s in (("obs", width), ("actions", outputs))]
    node = onnx.helper.make_node("MatMul", ["obs", "w"], ["actions"])
    graph = onnx.helper.make_graph([node], "g", ports[:1], ports[1:], [onnx.numpy_helper.from_array(weight, "w")])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=10)
    onnx.helper.set_model_props(model, metadata or {})
    return model.SerializeToString()


def mutate(folder: Path, sources: list[bytes], i: int, rng: np.random.Generator) -> None:
    """A policy of yaml and network, or of contract and network, with one of its files damaged."""
    for old in folder.iterdir():
        old.unlink()
    parts = [bytearray(s) for s in sources]
    broken = parts[i % 3]
    for _ in range(int(rng.integers(1, 6))):
        place = int(rng.integers(len(broken)))
        if rng.random() < 0.3:
            del broken[place : place + int(rng.integers(1, 200))]
        else:
            broken[place : place + 1] = bytes([int(rng.integers(256))])
        if not broken:
            broken += b"x"
    (folder / "policy.onnx").write_bytes(bytes(parts[1]))
    if i % 3 == 2:
        (folder / "contract.json").write_bytes(bytes(parts[2]))
    else:
        (folder / "deploy.yaml").write_bytes(bytes(parts[0]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    robot, rng = load_robot(DATA / "models" / "g1.xml"), np.random.default_rng(given.seed)
    good = read_policy(DATA / "unitree_rl_lab_g1", robot)
    assert good.contract is not None
    sources = [(DATA / "unitree_rl_lab_g1" / "deploy.yaml").read_bytes(), linear(480, 29), good.contract.json().encode()]
    refused = judged = 0
    with tempfile.TemporaryDirectory() as folder:
        for i in range(given.cases):
            mutate(Path(folder), sources, i, rng)
            try:
                check(folder, robot, seconds=0.1) if i % 10 == 0 else read_policy(folder, robot)
                judged += 1
            except BadInput:
                refused += 1
    print(json.dumps({"cases": given.cases, "refused": refused, "read": judged, "crashed": 0}))


if __name__ == "__main__":
    main()
