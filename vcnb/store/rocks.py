"""The journal of an embedded cluster: the present state of every object, in RocksDB.

A change is in RocksDB's write-ahead log, and so in the operating system's hands, before the call returns: it survives the
end of this process by kill -9. With ``durability="power"`` it is on the disk, too, and survives the end of the machine.

Keys are ``plural/namespace/name``, values the objects in MessagePack. Keys that begin with a zero byte are ours: the
format, and the version counter as of the last deletion (every other version stands in an object).

Damage is never repaired silently. What a crash leaves is a torn end of the write-ahead log: it is cut off, kept beside,
and reported. Anything else is refused with StoreCorrupt, and what is there stays as it is.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

from vcnb.errors import InternalError, InvalidObject, Problem, StoreCorrupt
from vcnb.resources.kinds import Kind
from vcnb.store.owner import Ownership, busy
from vcnb.store.protocol import Obj
from vcnb.store.wal import Damage, find_damage, has_unknown_record, log_files

if TYPE_CHECKING:
    from rocksdict import Rdict

__all__ = ["FORMAT", "Durability", "RocksJournal"]

Durability: TypeAlias = Literal["process", "power"]

FORMAT = 1
"""Of keys and values; raised when an older vcnb could no longer read them."""

_FORMAT_KEY = b"\x00format"
_VERSION_KEY = b"\x00version"
_FIRST_OBJECT = b"\x01"

_WRITE_BUFFER = 8 << 20
"""About how many bytes of changes a start reads again at most; beyond that RocksDB has sorted them into a table."""

_log = logging.getLogger(__name__)


class RocksJournal:
    """An open journal. ``directory`` is made when it is missing, for its owner only (mode 0700).

    Raises ClusterBusy when another process (or this one) has it open, StoreCorrupt when it cannot be trusted.
    ``recovered`` says what was cut off at the end of the log, None when nothing was. ``salvage=True`` gives up every
    change since the first damage in the write-ahead log; what is given up is kept in ``damaged/``.
    """

    def __init__(self, directory: Path, *, durability: Durability = "process", salvage: bool = False) -> None:
        if durability not in {"process", "power"}:
            raise ValueError(f"durability is 'process' or 'power', not {durability!r}")
        from rocksdict import WriteBatch

        self.directory = directory
        self._new_batch = WriteBatch
        self.recovered: str | None = None
        self._rocks = directory / "rocks"
        self._encode = msgspec.msgpack.Encoder().encode
        self._pid = os.getpid()
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        directory.chmod(0o700)
        self._ownership = Ownership(directory)
        try:
            self._db = self._open(salvage)
        except BaseException:
            self._ownership.release()
            raise
        try:
            self._check_format()
            if durability == "power":
                _write_through(self._db)
        except BaseException:
            self.close()
            raise

    def objects(self) -> Iterator[tuple[str, str, str, Obj]]:
        """Every object as (plural, namespace, name, object). Raises StoreCorrupt for what cannot be read."""
        decode = msgspec.msgpack.Decoder().decode
        entries = self._db.iter()
        entries.seek(_FIRST_OBJECT)
        while entries.valid():
            key = entries.key()
            try:
                plural, namespace, name = key.decode().split("/")
                obj: dict[str, Any] = decode(entries.value())
            except (ValueError, msgspec.DecodeError) as error:
                raise self._corrupt(f"the entry {key!r} cannot be read: {error}") from None
            yield plural, namespace, name, obj
            entries.next()
        try:
            entries.status()  # damage ends the iteration like an end does
        except Exception as error:  # noqa: BLE001 rocksdict raises no other type
            raise self._corrupt(str(error)) from None

    def version(self) -> int:
        """The version counter as of the last deletion."""
        return int.from_bytes(self._read(_VERSION_KEY) or b"", "big")

    def put(self, kind: Kind, namespace: str, name: str, obj: Obj) -> None:
        try:
            value = self._encode(obj)
        except (OverflowError, UnicodeEncodeError, RecursionError) as error:
            raise InvalidObject([Problem("", None, f"cannot be stored: {error}")], f"{kind} {name}") from None
        try:
            self._db.put(f"{kind.plural}/{namespace}/{name}".encode(), value)
        except Exception as error:
            raise self._unwritten(error) from error

    def remove(self, kind: Kind, namespace: str, name: str, version: int) -> None:
        batch = self._new_batch(raw_mode=True)
        batch.delete(f"{kind.plural}/{namespace}/{name}".encode())
        batch.put(_VERSION_KEY, version.to_bytes(8, "big"))
        try:
            self._db.write(batch)
        except Exception as error:
            raise self._unwritten(error) from error

    def close(self) -> None:
        """Close the files and free the directory. In a forked child it does nothing: the parent goes on."""
        if os.getpid() == self._pid:
            self._db.close()
            self._ownership.release()

    # Opening

    def _open(self, salvage: bool) -> Rdict:
        fresh = not any(self._rocks.glob("CURRENT")) and not any(
            file for pattern in ("*.sst", "*.log") for file in self._rocks.glob(pattern)
        )
        for manifest in self._rocks.glob("MANIFEST-*"):
            if has_unknown_record(manifest.read_bytes()):
                raise self._corrupt(f"{manifest} holds a record of an unknown type")
        logs = log_files(self._rocks)
        damage: Damage | None = None
        if any(has_unknown_record(log.read_bytes()) for log in logs):
            damage = find_damage(logs)
        if damage is None:
            try:
                return _rdict(self._rocks, create=fresh)
            except Exception as error:  # noqa: BLE001 rocksdict raises no other type
                if " lock " in str(error):
                    raise busy(self._rocks, None) from None
                damage = find_damage(logs)
                if damage is None:
                    raise self._corrupt(str(error)) from None
        if damage.in_the_middle and not salvage:
            raise self._corrupt(
                f"{damage.file} is damaged at byte {damage.offset} and whole changes follow",
                "open it with salvage=True to go back to the state before the damage (what follows is kept in "
                f"{self.directory / 'damaged'}), ",
            )
        self._cut(damage, logs)
        try:
            return _rdict(self._rocks, create=False)
        except Exception as error:  # noqa: BLE001 rocksdict raises no other type
            raise self._corrupt(str(error)) from None

    def _cut(self, damage: Damage, logs: list[Path]) -> None:
        """Take the unreadable end off the log, after a copy of the whole log was put aside."""
        aside = self.directory / "damaged"
        aside.mkdir(mode=0o700, exist_ok=True)
        given_up = logs[logs.index(damage.file) :]
        for log in given_up:
            number = sum(1 for _ in aside.iterdir())
            shutil.copy2(log, aside / f"{number:03d}-{log.name}")
        lost = damage.file.stat().st_size - damage.offset
        os.truncate(damage.file, damage.offset)
        for log in given_up[1:]:
            lost += log.stat().st_size
            os.truncate(log, 0)
        self.recovered = (
            f"the last {lost} bytes of the journal could not be read, as after a crash: every change before them is "
            f"there; a copy of the log is in {aside}"
        )
        _log.warning("%s: %s", self.directory, self.recovered)

    def _check_format(self) -> None:
        text = self._read(_FORMAT_KEY)
        if text is None:
            entries = self._db.iter()
            entries.seek_to_first()
            if entries.valid():
                raise StoreCorrupt(f"{self._rocks} holds another RocksDB database, not a cluster of vcnb")
            self._db.put(_FORMAT_KEY, str(FORMAT).encode())
        elif not text.isdigit() or int(text) != FORMAT:
            raise StoreCorrupt(
                f"{self.directory} was written in format {text.decode(errors='replace')}; this vcnb reads format "
                f"{FORMAT}. Nothing was changed. Use the version of vcnb that wrote it, or a newer one"
            )

    def _read(self, key: bytes) -> bytes | None:
        try:
            value: bytes | None = self._db.get(key)
        except Exception as error:  # noqa: BLE001 rocksdict raises no other type
            raise self._corrupt(str(error)) from None
        return value

    def _corrupt(self, reason: str, remedy: str = "") -> StoreCorrupt:
        return StoreCorrupt(
            f"the journal in {self.directory} is damaged: {' '.join(reason.split())}. Nothing was deleted. "
            f"What you can do: {remedy}put a copy of the directory back, or move it away and begin anew"
        )

    def _unwritten(self, error: Exception) -> InternalError:
        return InternalError(
            f"the change was not made: the journal in {self.directory} cannot be written ({error}); "
            "make room there, then close the cluster and connect again"
        )


def _write_through(db: Rdict) -> None:
    from rocksdict import WriteOptions

    options = WriteOptions()
    options.sync = True
    db.set_write_options(options)


def _rdict(directory: Path, *, create: bool) -> Rdict:
    from rocksdict import DBCompressionType, DBRecoveryMode, Options, Rdict

    options = Options(raw_mode=True)
    options.create_if_missing(create)
    options.set_wal_recovery_mode(DBRecoveryMode.absolute_consistency())
    options.set_paranoid_checks(True)
    options.set_write_buffer_size(_WRITE_BUFFER)
    options.set_compression_type(DBCompressionType.lz4())
    options.set_max_background_jobs(2)
    options.set_keep_log_file_num(2)
    options.set_max_log_file_size(1 << 20)
    options.set_stats_dump_period_sec(0)
    options.set_stats_persist_period_sec(0)
    return Rdict(str(directory), options)
