"""ROS 2 bags: a .db3 file, or the folder of a bag (.db3 files, or metadata.yaml beside .mcap files), which is one recording."""

from pathlib import Path

from gapless.errors import BadInput
from gapless.logs import db3_records, mcap_records
from gapless.logs.log import Log
from gapless.logs.mapping import Mapping
from gapless.logs.ros2_log import Bag

SUFFIXES = (".db3", ".mcap")


def can_read(path: Path) -> bool:
    if path.is_dir():
        return (path / "metadata.yaml").is_file() or any(path.glob("*.db3"))
    return path.suffix.lower() == ".db3"


def read(path: Path, mapping: Mapping) -> Log:
    return collected(path, mapping).log("rosbag", parts(path))


def parts(path: Path) -> list[Path]:
    """The files of a bag, in their order."""
    if not path.is_dir():
        return [path]
    files = sorted(p for p in path.iterdir() if p.suffix.lower() in SUFFIXES)
    if not files:
        raise BadInput(f"{path}: a bag without a .db3 or .mcap file (compressed ones must be unpacked: `zstd -d`)")
    return sorted(files, key=lambda p: (len(p.name), p.name))  # bag_2 before bag_10


def collected(path: Path, mapping: Mapping) -> Bag:
    """The topics of all files of a bag."""
    bag = Bag(path, mapping)
    for file in parts(path):
        if file.suffix.lower() == ".db3":
            for batch in db3_records.batches(file):
                bag.add(batch.topic, batch.kind, batch.definition, batch.log_times, batch.data)
            continue
        contents = mcap_records.Contents()
        for batches in mcap_records.batches(file, contents):
            for number, messages in batches.items():
                channel = contents.channels[number]
                if channel.encoding == "cdr":
                    bag.add(channel.topic, channel.schema, channel.definition, messages.log_times, messages.data)
    return bag
