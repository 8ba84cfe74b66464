"""Origin: what a result was made from, so that anybody can tell whether two results are of the same inputs."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version

from gapless.errors import BadInput
from gapless.files import sha256
from gapless.logs import Log
from gapless.report import Section, Table
from gapless.robots import files_of
from gapless.twin.twin import Twin


@dataclass(frozen=True)
class Origin:
    """The inputs of a result."""

    model: str
    """Name or path; empty where there is no model."""
    logs: tuple[str, ...]
    sha256: dict[str, str]
    """Of the model's files and of each log, by name, where they are files."""
    versions: dict[str, str]

    def section(self, *more: tuple[str, str]) -> Section:
        """The last section of a page. more: rows besides the inputs."""
        inputs = [("model", self.model)] * bool(self.model) + [("log", log) for log in self.logs]
        rows = [(kind, f"{name} {self.sha256.get(name, '')}".strip()) for kind, name in inputs]
        return Section("Made from", table=Table(("", ""), [*rows, *self.versions.items(), *more], words=2))


def origin_of(twin: Twin | None, logs: Sequence[Log]) -> Origin:
    """What a result of a twin and logs is made from."""
    names = tuple(log.provenance.source or f"log {i + 1}" for i, log in enumerate(logs))
    hashes = {name: log.provenance.sha256 for name, log in zip(names, logs, strict=True) if log.provenance.sha256}
    with suppress(BadInput, OSError):  # a model that is no file, or no longer there
        hashes |= {twin.source: sha256(*files_of(twin.source))} if twin and twin.source else {}
    versions = {name: version(name) for name in ("gapless", "mujoco", "numpy", "scipy")}
    return Origin(twin.source if twin else "", names, hashes, versions)
