"""Stages: what a loop has done so far, each stage in a folder of its own; nothing is done again whose inputs did not change."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

from gapless.checks import Checked, checked, flag, number, part_of, text
from gapless.errors import BadInput, PhysicsError
from gapless.files import within
from gapless.plain import plain, read_json, write_json

T = TypeVar("T")
Tell = Callable[[str, float | None], object]
"""Told what is being done, and how many seconds are left where that is known."""
RECORD = "stage.json"


@dataclass(frozen=True)
class Record(Checked):
    """What is known of a stage."""

    key: str = checked(text)
    """Hash of its inputs."""
    done: bool = checked(flag)
    robot: float = checked(number, 0.0, low=0.0)
    """Robot time that it spent [s]."""
    computing: float = checked(number, 0.0, low=0.0)
    """Time of all cores [s]."""
    wall: float = checked(number, 0.0, low=0.0)
    """[s]"""


class StageFailed(BadInput):
    """A stage could not be done: which, why, and that the loop can be taken up there."""


class Stages:
    """Stages of a loop in a folder; robot time is counted over all of them.

        stages = Stages(Path("out/close"), budget=60.0)
        log = stages.run("log", {"motion": "rich", "seconds": 20}, make, load, robot=20.0)

    A stage that was interrupted finds its folder as it left it, if its inputs are the same.
    """

    def __init__(self, folder: Path, budget: float = 60.0, tell: Tell = lambda text, left: None):
        self.folder, self.budget, self.tell = folder, budget, tell
        self.records: dict[str, Record] = {}
        """Of the stages that were run or found done, in order."""
        self._below = ""

    def below(self, name: str) -> Stages:
        """The same work, whose next stages are in a folder of their own."""
        out = Stages(self.folder, self.budget, self.tell)
        out.records, out._below = self.records, f"{self._below}{name}/"
        return out

    def place(self, name: str) -> Path:
        """The folder of a stage."""
        return self.folder / f"{self._below}{name}"

    @property
    def spent(self) -> float:
        """Robot time so far [s]."""
        return sum(r.robot for r in self.records.values())

    @property
    def computing(self) -> float:
        """Time of all cores so far [s]."""
        return sum(r.computing for r in self.records.values())

    def run(
        self,
        name: str,
        inputs: Mapping[str, Any],
        make: Callable[[Path], object],
        load: Callable[[Path], T],
        robot: float = 0.0,
        says: str = "",
    ) -> T:
        """What a stage made, now or earlier.

        Args:
            name: of the stage and its folder, which may be below another.
            inputs: all that the result depends on, as JSON has it; keys of earlier stages (`key`) stand for their results.
            make: writes the result into a folder.
            load: reads it from there.
            robot: time of the robot that it takes [s].
            says: what it does, for progress.
        """
        folder, name = self.place(name), f"{self._below}{name}"
        key = key_of({"version": metadata.version("gapless"), **inputs})
        spent = sum(r.robot for other, r in self.records.items() if other != name)
        if robot and spent + robot > self.budget + 1e-6:
            raise StageFailed(
                f"stage {name}: needs {robot:g} s of robot time, and of {self.budget:g} s {spent:g} s are spent; "
                f"allow more (--robot-time), what was done until then is kept in {self.folder}"
            )
        found = read_record(folder)
        if found is None or found.key != key:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            found = Record(key, False)
            write_json(folder / RECORD, found)
        if not found.done:
            self.tell(says or name, None)
            found = self._made(name, found, make, folder, robot)
        self.records[name] = found
        return load(folder)

    def _made(self, name: str, before: Record, make: Callable[[Path], object], folder: Path, robot: float) -> Record:
        """Do a stage, and count its time together with that of earlier attempts."""
        began, cpu, done = time.perf_counter(), time.process_time(), False
        try:
            make(folder)
            done = True
        except BadInput as error:
            raise StageFailed(f"stage {name}: {error}; mend that and run the same again: {self.folder} is kept") from None
        except PhysicsError as error:
            raise PhysicsError(f"stage {name}: {error}; what was done before is kept in {self.folder}") from None
        except OSError as error:
            reason = error.strerror or error
            raise StageFailed(f"stage {name}: {reason}; mend that and run the same again: {self.folder} is kept") from None
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"stopped in stage {name}: the same command goes on there") from None
        finally:
            took = before.computing + time.process_time() - cpu, before.wall + time.perf_counter() - began
            record = Record(before.key, done, robot if done else 0.0, *took)
            with contextlib.suppress(OSError):  # on a full disk the record stays as it was: not done
                write_json(folder / RECORD, record)
        return record

    def key(self, name: str) -> str:
        """Hash that stands for the result of a stage that was done."""
        return self.records[f"{self._below}{name}"].key


def read_record(folder: Path) -> Record | None:
    """What is known of the stage in a folder; None where there is none."""
    path = folder / RECORD
    if not path.is_file():
        return None
    with within(path):
        record: Record = part_of(read_json(path, 1 << 16), "the record of a stage", Record)
    return record


def key_of(inputs: Mapping[str, Any]) -> str:
    """The hash of inputs, in whatever order they are."""
    return hashlib.sha256(json.dumps(plain(dict(inputs)), sort_keys=True).encode()).hexdigest()
