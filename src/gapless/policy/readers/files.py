"""The files of a policy: the network that was named, or is alone in its folder, and the configurations beside it."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from gapless.errors import BadInput
from gapless.policy.readers.networks import Network, read_network
from gapless.policy.readers.yaml_lines import read_yaml

NETWORKS = (".onnx", ".pt", ".jit", ".pth")
CONFIGURATIONS = (".yaml", ".yml")
OF_TRAINING = ("env.yaml", "agent.yaml")
"""What Isaac Lab dumps of a training, python objects and all; it is no contract."""
ROBOT = "base.yaml"
"""What rl_sar says of a robot, for all its policies."""
MOST_CONFIGURATIONS = 20


@dataclass(frozen=True)
class Yaml:
    """A configuration and the line of each entry."""

    path: Path
    table: dict[str, Any]
    lines: dict[str, int]

    def at(self, name: str) -> str:
        """Where an entry is, as a source."""
        return f"{self.path.name}:{self.lines.get(name, 1)}"


@dataclass(frozen=True)
class PolicyFiles:
    """Where a policy is."""

    folder: Path
    network_path: Path
    configurations: tuple[Path, ...]

    @cached_property
    def network(self) -> Network:
        return read_network(self.network_path)

    @cached_property
    def yamls(self) -> tuple[Yaml, ...]:
        return tuple(Yaml(path, *read_yaml(path)) for path in self.configurations)

    def yaml_with(self, *keys: str) -> Yaml | None:
        """The first configuration that has all of some entries."""
        return next((y for y in self.yamls if all(k in y.table for k in keys)), None)


def find_files(path: Path) -> PolicyFiles:
    """The files of a policy by its folder, its network or its configuration."""
    if not path.exists():
        raise BadInput(f"{path}: there is no such file or folder; give a policy's folder, its ONNX file or its YAML file")
    folder = path if path.is_dir() else path.parent
    inside = _files(folder) + (_files(folder / "exported") if path.is_dir() else [])
    networks = [p for p in inside if p.suffix.lower() in NETWORKS]
    yamls = [p for p in _files(folder) if p.suffix.lower() in CONFIGURATIONS and p.name not in OF_TRAINING]
    yamls = [*yamls, *_elsewhere(folder)][:MOST_CONFIGURATIONS]
    if path.is_file() and path.suffix.lower() in NETWORKS:
        return PolicyFiles(folder, path, tuple(yamls))
    if path.is_file():
        if path.suffix.lower() not in (*CONFIGURATIONS, ".json"):
            raise BadInput(f"{path}: is neither a network ({', '.join(NETWORKS)}) nor a configuration (.yaml)")
        robots = [y for y in yamls if y.name == ROBOT and y != path]
        yamls = [path, *robots] if path.suffix.lower() in CONFIGURATIONS else yamls
    named = [p for p in networks if p.stem == "policy"] or networks
    # the same network is often there in both containers; the one that needs no torch is read
    chosen = next((p for p in named if p.suffix == ".onnx"), named[0] if named else None)
    if chosen is None:
        raise BadInput(f"{folder}: has no network; a policy is a file {', '.join(NETWORKS)} beside its configuration")
    if len({p.stem for p in named}) > 1:
        raise BadInput(f"{folder}: holds several networks ({', '.join(p.name for p in named)}); name the one to check")
    return PolicyFiles(folder, chosen, tuple(yamls))


def _files(folder: Path) -> list[Path]:
    return sorted(p for p in folder.iterdir() if p.is_file()) if folder.is_dir() else []


def _elsewhere(folder: Path) -> list[Path]:
    """Configurations that frameworks keep in a folder of their own: a robot's above its policies', a training's in params."""
    own = folder.parent if folder.name == "exported" else folder
    places = (own / "params" / "deploy.yaml", folder.parent / ROBOT, folder.parent.parent / ROBOT)
    return [p for p in places if p.is_file()]
