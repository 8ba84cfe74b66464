"""Files that may be hostile: bounded reading, hashing, memory limits, atomic writing."""

import gzip
import hashlib
import os
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gapless.errors import BadInput

BLOCK = 1 << 18
"""Bytes read at a time."""
FREE_EXPANSION = 4 << 20
"""Bytes that a compressed file may always unpack to ..."""
MAX_EXPANSION = 32
"""... and otherwise this many times its size. Logs reach 5 to 20, a bomb 1,000."""


def regular(path: Path) -> Path:
    """The path, if it is a file with something in it."""
    if not path.is_file():
        raise BadInput(f"{path}: " + ("is not a file" if path.exists() else "there is no such file"))
    if path.stat().st_size == 0:
        raise BadInput(f"{path}: the file is empty")
    return path


def sha256(*paths: Path) -> str:
    """The hash of one file, or of several one after the other."""
    digest = hashlib.sha256()
    for path in paths:
        length = min(BLOCK, path.stat().st_size + 1)
        with path.open("rb") as file:
            while block := file.read(length):
                digest.update(block)
    return digest.hexdigest()


def expansion_limit(size: int) -> int:
    """How many bytes a compressed file of this size may unpack to."""
    return max(FREE_EXPANSION, MAX_EXPANSION * size)


def blocks(path: Path, length: int = BLOCK) -> Iterator[bytes]:
    """The bytes of a file, or what a gzip file unpacks to, a block at a time."""
    size = regular(path).stat().st_size
    with path.open("rb") as raw:
        packed = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        if not packed:
            while block := raw.read(min(length, size + 1)):
                yield block
            return
        total, limit = 0, expansion_limit(size)
        try:
            with gzip.GzipFile(fileobj=raw) as file:
                while block := file.read(length):
                    total += len(block)
                    if total > limit:
                        raise BadInput(
                            f"{path}: unpacks to more than {limit} bytes, {MAX_EXPANSION} times its size; "
                            "if you trust it, unpack it first"
                        )
                    yield block
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise BadInput(f"{path}: damaged gzip data after {total} unpacked bytes ({reason(error)})") from None


def text(path: Path, limit: int) -> str:
    """A whole small text file, of at most `limit` bytes."""
    if (size := regular(path).stat().st_size) > limit:
        raise BadInput(f"{path}: {size} bytes, but at most {limit} were expected")
    try:
        return path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: byte {error.start} is not UTF-8 text") from None


def check_zip(path: Path) -> zipfile.ZipFile:
    """An opened zip container whose members may be unpacked safely."""
    size = regular(path).stat().st_size
    damage = zipfile.BadZipFile, OSError, ValueError, NotImplementedError, EOFError, IndexError
    with refusing(f"{path}: not a whole zip container", *damage):
        archive = zipfile.ZipFile(path)
        members = archive.infolist()
    for member in members:
        if member.header_offset + member.compress_size > size:  # zipfile would make room for all that it claims
            archive.close()
            raise BadInput(f"{path}: not a whole zip container ({member.filename[:40]!r} goes beyond its end)")
    total = sum(m.file_size for m in members)
    if total > expansion_limit(size):
        archive.close()
        raise BadInput(f"{path}: claims to unpack to {total} bytes, over {MAX_EXPANSION} times its size; save it uncompressed")
    return archive


def require_memory(path: Path, needed: int) -> None:
    """Raise where a log does not fit into memory, with its size."""
    free = available_memory()
    if needed > free:
        raise BadInput(
            f"{path}: its signals need {needed / 1e9:.1f} GB of memory and {free / 1e9:.1f} GB are free; "
            "cut the log into shorter ones"
        )


def available_memory() -> int:
    """Bytes that this process may still use: free memory, or less where a limit is set."""
    free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        fields = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
        free = int(fields["MemAvailable"].split()[0]) * 1024
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit != resource.RLIM_INFINITY:
            used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
            free = min(free, limit - used)
    except (OSError, KeyError, ValueError, ImportError):
        pass
    return free


@contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """A temporary path in the same folder that takes the place of `path` if all goes well."""
    if not path.parent.is_dir():
        raise BadInput(f"{path}: there is no folder {path.parent}")
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=path.suffix)
    os.close(handle)
    try:
        os.chmod(name, 0o666 & ~_umask())
        yield Path(name)
        os.replace(name, path)
    finally:
        Path(name).unlink(missing_ok=True)


@contextmanager
def refusing(sentence: str, *kinds: type[Exception]) -> Iterator[None]:
    """Make bad input of errors of other libraries: the sentence, and what they say in brackets. Bad input stays as it is."""
    try:
        yield
    except BadInput:
        raise
    except kinds as error:
        raise BadInput(f"{sentence} ({reason(error)})") from None


@contextmanager
def within(where: object) -> Iterator[None]:
    """Say of bad input where it is, unless it says so itself."""
    try:
        yield
    except BadInput as error:
        raise error if str(where) in str(error) else BadInput(f"{where}: {error}") from None


def reason(error: BaseException) -> str:
    """What another library says, cut to one line."""
    first = next(iter(str(error).splitlines()), "")
    return first[:160] if first.strip() else type(error).__name__


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
