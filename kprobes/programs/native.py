"""LLVM IR to machine code: bytes that run wherever they are put, kept on disk by their content."""

from __future__ import annotations

import hashlib
import os
import struct
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from ..arch._compiling import Triple
from ..errors import Unsupported
from ..hostsystem import is_private

# of a file in the cache; its number changes with what is made of the same IR
MAGIC = b"kprobes program 2\n"
_OWN = 0o700
#: LLVM's, in order: a third of the time that its own second level takes, and the code is as good
_PASSES = (
    "always_inliner",
    "sroa",
    "instruction_combine",
    "simplify_cfg",
    "new_gvn",
    "sroa",
    "dead_store_elimination",
    "instruction_combine",
    "jump_threading",
    "simplify_cfg",
)


@cache
def llvm() -> Any:
    """Return the module llvmlite.binding, initialised for all targets at the first call.

    Raises:
        Unsupported: llvmlite is not installed.
    """
    try:
        from llvmlite import binding
    except ImportError:
        raise Unsupported(
            "compiled programs need llvmlite",
            hint="pip install 'kprobes[jit]'; without it programs run in the interpreter",
        ) from None
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    # no constants in data of their own
    binding.set_option("kprobes", "-riscv-max-build-ints-cost=16")
    return binding


def compiled(ir: str, triple: Triple) -> bytes:
    """Return the machine code of LLVM IR, taken from the cache on disk, or else compiled.

    What is compiled is written to the cache.

    Args:
        ir: the IR of a module, whose function `@run` comes first in the code.
        triple: LLVM's target.

    Raises:
        Unsupported: llvmlite is not installed, LLVM has no such target, or the code would refer to
            data elsewhere.
    """
    key = hashlib.sha256(
        "\0".join((triple.text, triple.cpu, triple.features, triple.relocation, ir)).encode()
    ).hexdigest()
    place = directory()
    code = None if place is None else _read(place / key)
    if code is None:
        code = translate(ir, triple)
        if place is not None:
            _write(place / key, code)
    return code


def translate(ir: str, triple: Triple) -> bytes:
    """Compile LLVM IR to machine code that runs at any address; the cache is not used.

    Args:
        ir: the IR of a module, whose function `@run` comes first.
        triple: LLVM's target.

    Returns:
        The code, with `@run` at its start.

    Raises:
        Unsupported: llvmlite is not installed; or LLVM lacks the target, refuses `ir`, or makes
            code that does not run wherever it is put.
    """
    binding = llvm()
    try:
        machine = binding.Target.from_triple(triple.text).create_target_machine(
            triple.cpu, triple.features, 2, triple.relocation, "small"
        )
        module = binding.parse_assembly(ir)
    except RuntimeError as error:
        raise Unsupported(f"LLVM does not compile for {triple.text}: {error}") from None
    with module:
        module.triple = triple.text
        module.data_layout = str(machine.target_data)
        builder = binding.create_pass_builder(machine, binding.create_pipeline_tuning_options(2))
        passes = binding.create_new_module_pass_manager()
        for name in _PASSES:
            getattr(passes, f"add_{name}_pass")()
        passes.run(module, builder)
        return _text(binding, machine.emit_object(module), triple)


def _text(binding: Any, image: bytes, triple: Triple) -> bytes:
    """Return the machine code in an object file.

    Args:
        binding: the module llvmlite.binding.
        image: the object file's bytes.
        triple: what it was compiled for.

    Raises:
        Unsupported: the code refers to data outside of its section.
    """
    code = b""
    for section in binding.ObjectFileRef.from_data(image).sections():
        if section.name() == b".text":
            code = section.data()
        elif (
            section.name() in (b".rela.text", b".rel.text")
            and section.size()
            and not _unused(section.data(), triple)
        ):
            raise Unsupported(f"LLVM's code for {triple.text} refers to data of its own")
    return bytes(code)


def _unused(relocations: bytes, triple: Triple) -> bool:
    """Return True where the code works without any of the relocations being applied.

    Args:
        relocations: bytes of the object's section of relocations.
        triple: what the code was compiled for; it names the types of relocations that do not
            matter.
    """
    return bool(triple.unused) and all(
        info & 0xFFFF_FFFF in triple.unused
        for _, info, _ in struct.iter_unpack("<QQq", relocations)
    )


# --- the cache


def directory() -> Path | None:
    """Return the folder of the cache: kprobes/programs in $XDG_CACHE_HOME, or in ~/.cache.

    Returns:
        The path, whether or not the folder exists; None: the user has no home.
    """
    try:
        return (
            Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
            / "kprobes"
            / "programs"
        )
    except RuntimeError:
        return None


def _read(path: Path) -> bytes | None:
    """Return the machine code in a file of the cache.

    Returns:
        None: there is no such file, or it is damaged, or other users could have written it: the
        code is going to be executed.
    """
    try:
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            image = file.read()
    except OSError:
        return None
    if not is_private(status):
        return None
    head = image[: len(MAGIC)]
    digest = image[len(MAGIC) : len(MAGIC) + 32]
    code = image[len(MAGIC) + 32 :]
    return code if head == MAGIC and hashlib.sha256(code).digest() == digest else None


def _write(path: Path, code: bytes) -> None:
    """Write code to a file of the cache, behind MAGIC and its SHA-256 digest, whole or not at all.

    Its folder is made where it is missing. OSErrors are ignored.

    Args:
        path: the file.
        code: the machine code.
    """
    try:
        path.parent.mkdir(mode=_OWN, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent)  # which nobody else may write
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(MAGIC + hashlib.sha256(code).digest() + code)
            os.replace(name, path)
        except OSError:
            os.unlink(name)
    except OSError:
        pass
