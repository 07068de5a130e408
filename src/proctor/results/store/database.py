"""The SQLite file of the store: opening it in WAL mode, transactions, and errors as `StoreError`."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from proctor.base.errors import ProctorError, StoreError
from proctor.results.store.schema import VERSION, create_or_migrate

BUSY_SECONDS = 60
"""How long to wait for another process that is writing."""


class Database:
    """One open database, used from one thread. A file that cannot be written can still be read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = Path(os.path.abspath(path))  # noqa: PTH100  an agent may change the working folder later
        self._copy: TemporaryDirectory[str] | None = None
        self._open_connection: sqlite3.Connection | None = _connect(path)
        self._readers = 0
        """Readers that have not reached the end, which need the connection."""
        self._identity = (0, 0)
        try:
            if _is_read_only(path):
                self._open_read_only()
            else:
                self._prepare()
            about = path.stat()
            self._identity = (about.st_dev, about.st_ino)
        except BaseException:
            self.close()
            raise

    @property
    def opened_path(self) -> Path:
        """The file that is open: `path`, or a private copy of it."""
        return self.path if self._copy is None else Path(self._copy.name) / self.path.name

    @property
    def _connection(self) -> sqlite3.Connection:
        """The connection, opened again after `rest`."""
        if self._open_connection is None:
            self.check_present()  # SQLite would create the file
            self._open_connection = _connect(self._file)
            self._open_connection.execute("PRAGMA synchronous = NORMAL")
        return self._open_connection

    def rest(self) -> None:
        """Close the file until it is used again: a script may have hundreds of runs, each with its store."""
        if self._open_connection is not None and self._copy is None and not self._readers:
            self._open_connection.close()
            self._open_connection = None

    def check_present(self) -> None:
        """Raise `StoreError` if the file was removed or replaced; SQLite would keep writing to the removed file."""
        try:
            about = self._file.stat()
        except OSError:
            about = None
        if about is None or (about.st_dev, about.st_ino) != self._identity:
            raise StoreError(f"{self.path} was removed or replaced while Proctor was using it")

    def read_file(self, query: str, parameters: tuple[Any, ...] = ()) -> list[Any]:
        """The rows of a query as another program would read them: our own connection has pages in memory."""
        with self.store_errors("read"):
            connection = _connect(self._file)
            try:
                return connection.execute(query, parameters).fetchall()
            finally:
                connection.close()

    def close(self) -> None:
        if self._open_connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._open_connection.close()
        if self._copy is not None:
            self._copy.cleanup()

    def __del__(self) -> None:
        try:
            if hasattr(self, "_open_connection"):
                self.close()
        except BaseException:  # noqa: S110  while Python exits, modules may already be gone
            pass

    def insert(self, statement: str, values: tuple[Any, ...]) -> int:
        """Insert a row and return its number."""
        return int(self._connection.execute(statement, values).lastrowid or 0)

    def execute(self, statement: str, values: tuple[Any, ...] = ()) -> None:
        self._connection.execute(statement, values)

    def execute_many(self, statement: str, rows: list[tuple[Any, ...]]) -> None:
        self._connection.executemany(statement, rows)

    def read(self, query: str, parameters: tuple[Any, ...] = ()) -> Iterator[Any]:
        with self.store_errors("read"):
            cursor = self._connection.execute(query, parameters)
            self._readers += 1
            try:
                # Not `yield from cursor`: that would close the cursor of a reader left half-way, maybe after the
                # database.
                while (row := cursor.fetchone()) is not None:
                    yield row
            finally:
                self._readers -= 1

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """A transaction: everything inside is written, or nothing."""
        with self.store_errors("written"):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
                raise

    @contextlib.contextmanager
    def store_errors(self, action: str) -> Iterator[None]:
        """Turn every failure inside into a `StoreError` that names the file."""
        with store_errors(self.path, action):
            yield

    def _prepare(self) -> None:
        """Create the tables of a new database, or migrate one of an earlier version."""
        if self._version() < VERSION:
            self._switch_to_wal()
            with self.transaction():
                version = self._version()  # another process may have been faster
                if version < VERSION:
                    create_or_migrate(self._connection, version)
        self._connection.execute("PRAGMA synchronous = NORMAL")

    def _open_read_only(self) -> None:
        """Open the file for reading, or a private copy of it if that is not possible.

        A copy is needed for an earlier version, which has to be migrated, and if SQLite cannot create the files next to
        the database that it needs to open it. Neither the file nor the copy is written to.
        """
        try:
            current = self._version() == VERSION
        except sqlite3.OperationalError:
            current = False
        if not current:
            self.close()
            self._copy = TemporaryDirectory(prefix="proctor-store-")
            copied = Path(self._copy.name) / self.path.name
            for ending in ("", "-wal"):
                with contextlib.suppress(FileNotFoundError):
                    shutil.copyfile(f"{self.path}{ending}", f"{copied}{ending}")
            self._open_connection = _connect(copied)
            self._prepare()
        self._connection.execute("PRAGMA query_only = ON")

    def _version(self) -> int:
        version = int(self._connection.execute("PRAGMA user_version").fetchone()[0])
        if version > VERSION:
            raise StoreError(
                f"{self.path} was written by a newer Proctor (store version {version}; this one reads up to {VERSION});"
                " update Proctor, or name another folder with --store"
            )
        return version

    def _switch_to_wal(self) -> None:
        """Wait for another process that creates the same store: SQLite does not wait for this lock by itself."""
        deadline = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                self._connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    connection.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}")
    return connection


def _is_read_only(path: Path) -> bool:
    return path.is_file() and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))


@contextlib.contextmanager
def store_errors(path: Path, action: str) -> Iterator[None]:
    """Turn every failure inside into a `StoreError` that names the file."""
    try:
        yield
    except ProctorError:
        raise
    except Exception as error:  # a damaged file can contain anything, and so can values from user code
        raise StoreError(f"{path} cannot be {action}: {error}") from error
