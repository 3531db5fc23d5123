#!/usr/bin/env python3
"""Make a release's wheels from the one that `python -m build` makes: `tools/wheels.py WHEEL LIBRARIES FOLDER`.

That one has the libraries of host code for Linux. Here each platform gets a wheel of its own tag, with one library; the
wheel for any platform has none. LIBRARIES is the folder that `python -m kprobes.native.build --others` has written.
The same input gives the same bytes: members are in the order of their names, .dist-info last, with one date.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import re
import zipfile
from pathlib import Path

NATIVE = "kprobes/native"
LINUX = ("x86_64", "aarch64")
#: Oldest C libraries that the wheels are for. Host code uses none, and a Python from 3.10 on needs newer ones.
GLIBC, MUSL = "manylinux_2_17", "musllinux_1_1"


def platforms() -> dict[str, str]:
    """Return the wheels to make: tag of the platform -> name of its library, "": without one."""
    tags = {"any": ""}
    for host in LINUX:
        tags[f"{GLIBC}_{host}.manylinux2014_{host}"] = f"{host}.so"
        tags[f"{MUSL}_{host}"] = f"{host}.so"
    tags["macosx_11_0_x86_64"] = "x86_64.dylib"
    tags["macosx_11_0_arm64"] = "aarch64.dylib"
    tags["win_amd64"] = "x86_64.dll"
    return tags


def members(wheel: Path) -> tuple[dict[str, bytes], tuple[int, int, int, int, int, int]]:
    """Read a wheel.

    Args:
        wheel: path of it.

    Returns:
        Name -> content of what is in it, without its list (RECORD), and the date of its first member.
    """
    with zipfile.ZipFile(wheel) as archive:
        found = {info.filename: archive.read(info) for info in archive.infolist()}
        date = archive.infolist()[0].date_time
    return {name: content for name, content in found.items() if not name.endswith(".dist-info/RECORD")}, date


def tagged(content: dict[str, bytes], tag: str, library: str, libraries: Path) -> dict[str, bytes]:
    """Return the members of a platform's wheel, the list (RECORD) included.

    Args:
        content: name -> content of the wheel with all of Linux's libraries.
        tag: of the platform; several are joined by dots.
        library: name of its library; "": it has none.
        libraries: folder of the libraries that are not in `content`.
    """
    kept = {name: data for name, data in content.items()
            if not re.fullmatch(rf"{NATIVE}/\w+\.(so|dylib|dll)", name)}
    if library:
        path = f"{NATIVE}/{library}"
        kept[path] = content.get(path) or (libraries / library).read_bytes()
    about = next(name for name in kept if name.endswith(".dist-info/WHEEL"))
    lines = [line for line in kept[about].decode().splitlines() if not line.startswith(("Root-Is-Purelib", "Tag"))]
    lines += [f"Root-Is-Purelib: {str(not library).lower()}", *(f"Tag: py3-none-{one}" for one in tag.split("."))]
    kept[about] = ("\n".join(lines) + "\n").encode()
    record = about.replace("WHEEL", "RECORD")
    rows = [f"{name},sha256={_digest(data)},{len(data)}" for name, data in sorted(kept.items())]
    kept[record] = ("\n".join([*rows, f"{record},,"]) + "\n").encode()
    return kept


def _digest(data: bytes) -> str:
    """Return the SHA-256 of bytes as a wheel's list has it."""
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def write(path: Path, content: dict[str, bytes], date: tuple[int, int, int, int, int, int]) -> None:
    """Write a wheel.

    Args:
        path: of the new file.
        content: name -> content of what is in it.
        date: of each member: year, month, day, hour, minute, second.
    """
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in sorted(content.items(), key=lambda item: (".dist-info/" in item[0], item[0])):
            info = zipfile.ZipInfo(name, date)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o100644 << 16
            archive.writestr(info, data)


def make(wheel: Path, libraries: Path, folder: Path) -> list[Path]:
    """Write the wheels of all platforms, and return their paths.

    Args:
        wheel: the wheel of `python -m build`.
        libraries: folder of the libraries for macOS and Windows.
        folder: where the wheels are written; it exists.
    """
    content, date = members(wheel)
    name, version, *_ = wheel.name.split("-")
    made = []
    for tag, library in platforms().items():
        path = folder / f"{name}-{version}-py3-none-{tag}.whl"
        write(path, tagged(content, tag, library, libraries), date)
        made.append(path)
    return made


def main() -> None:
    """Run the command, and print the size and name of each wheel."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("wheel", type=Path)
    parser.add_argument("libraries", type=Path)
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    for path in make(options.wheel, options.libraries, options.folder):
        print(f"{path.stat().st_size:9,d}  {path.name}")


if __name__ == "__main__":
    main()
