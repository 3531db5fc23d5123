"""Files that are there when they are complete: written beside, then renamed."""

from __future__ import annotations

import contextlib
import io
import os
from types import TracebackType
from typing import IO, Any

LONGEST = 100  #: characters of a file's name that the name beside it has


class _Named(io.FileIO):
    """An open file whose errors (no space left, say) name the file that it will become."""

    def __init__(self, descriptor: int, path: str) -> None:
        """
        Args:
            descriptor: of the open file; it is closed with this object.
            path: for errors.
        """
        super().__init__(descriptor, "wb")
        self._path = path

    def write(self, data: Any) -> int:
        """Write data, and return the number of bytes.

        An OSError names the file that this will become.
        """
        try:
            return super().write(data)
        except OSError as error:
            error.filename = self._path
            raise


class NewFile:
    """A context manager that writes a file beside `path` and renames it to that at its end.

    Where the body raises, the new file is removed, and what was at `path` before stays; with `keep`
    the new file replaces it all the same. What is no regular file (a device, a pipe), and a file in
    a folder that cannot be written, is written in place.

    Attributes:
        file: to be written to.
        keep: True: the file is complete at any moment from now on, and is renamed to `path` however
            the body ends.
    """

    def __init__(self, path: str | os.PathLike[str], *, binary: bool, keep: bool = False) -> None:
        """Open the file beside `path`.

        Args:
            path: of the file that is replaced at the end.
            binary: True: it takes bytes; False: text, written in UTF-8, with escapes for what
                cannot be.
            keep: True: what was written becomes the file even if the body raises.

        Raises:
            OSError: it cannot be written.
        """
        self.keep = keep
        self._path = os.fspath(path)
        self._target = os.path.realpath(self._path)  # a link stays one
        self._part = ""
        raw = io.BufferedWriter(_Named(self._open(), self._path))
        self.file: IO[Any] = (
            raw
            if binary
            else io.TextIOWrapper(raw, encoding="utf-8", errors="backslashreplace", newline="\n")
        )

    def _open(self) -> int:
        """Open the file to be written, and return its descriptor.

        It is a new one beside `path`, with the permissions of the file that it will replace;
        `_part` is set to the new one's path. It is `path` itself, emptied, where that is there and
        is no regular file, or may not be written (which raises), or where its folder cannot be
        written.

        Raises:
            OSError: it cannot be opened; the error names `path`.
        """
        # Windows would write \r\n for \n
        flags = os.O_WRONLY | os.O_CREAT | getattr(os, "O_BINARY", 0)
        there = os.path.lexists(self._target)
        if there and not (os.path.isfile(self._target) and os.access(self._target, os.W_OK)):
            return os.open(self._path, flags | os.O_TRUNC, 0o666)
        folder, name = os.path.split(self._target)
        part = os.path.join(folder, f".{name[:LONGEST]}.{os.urandom(4).hex()}.part")
        try:
            descriptor = os.open(part, flags | os.O_EXCL, 0o666)
        except PermissionError:
            return os.open(self._path, flags | os.O_TRUNC, 0o666)
        except OSError as error:
            error.filename = self._path
            raise
        self._part = part
        if there:
            with contextlib.suppress(OSError):
                os.chmod(part, os.stat(self._target).st_mode & 0o7777)
        return descriptor

    def __enter__(self) -> NewFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None or self.keep:
                self._finish()
            else:
                with contextlib.suppress(OSError):  # of what is thrown away
                    self.file.close()
        finally:
            if self._part:
                with contextlib.suppress(OSError):
                    os.unlink(self._part)

    def _finish(self) -> None:
        """Close the file, and rename it to `path` where it is not that already.

        Raises:
            OSError: it cannot be written or renamed; the error names `path`.
        """
        try:
            self.file.close()
            if self._part:
                os.replace(self._part, self._target)
                self._part = ""
        except OSError as failed:
            raise OSError(failed.errno, failed.strerror, self._path) from None
