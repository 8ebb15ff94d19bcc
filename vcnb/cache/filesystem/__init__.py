"""The filesystem that reads through the cache: ``vcache://s3/bucket/x``, for fsspec and all that use it.

``reader`` reads pages from workers and what is missing from sources, on the loop of the cache; ``filesystem`` and ``file``
are how any thread, loop or process uses it.
"""

from __future__ import annotations

from vcnb.cache.filesystem.file import CacheFile
from vcnb.cache.filesystem.filesystem import CacheFileSystem
from vcnb.cache.filesystem.numbers import ReadStatistics
from vcnb.cache.filesystem.reader import CacheReader, ReadableCache

__all__ = ["CacheFile", "CacheFileSystem", "CacheReader", "ReadStatistics", "ReadableCache"]
