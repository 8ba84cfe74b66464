"""Compiled functions whose cache on disk any number of processes may fill and read at once."""

import hashlib
from collections.abc import Callable
from typing import Any

import numba
from numba.core.caching import IndexDataCacheFile


class _FileByContent(IndexDataCacheFile):
    """A cache file named by what it holds: signature, source and version.

    Numba numbers its files and keeps their meaning in an index. Two processes that compile different signatures of a function
    at once both take the next number, and whoever reads it later may run code for other types: a segmentation fault.
    """

    def _named(self, key: Any) -> str:
        content = repr((key, self._source_stamp, self._version)).encode()
        return self._index_name.removesuffix(".nbi") + f".{hashlib.sha256(content).hexdigest()[:24]}.nbc"

    def save(self, key: Any, data: Any) -> None:
        self._save_data(self._named(key), data)

    def load(self, key: Any) -> Any:
        try:
            return self._load_data(self._named(key))
        except OSError:
            return None


def compiled(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """The function compiled by `numba.njit` at its first call, and kept on disk for the next process."""
    if function is None:
        return lambda function: compiled(function, **options)
    dispatcher = numba.njit(cache=True, **options)(function)
    cache = getattr(dispatcher, "_cache", None)  # absent where compilation is switched off for debugging
    if cache is not None:
        file = cache._cache_file
        cache._cache_file = _FileByContent(file._cache_path, cache._impl.filename_base, file._source_stamp)
    return dispatcher
