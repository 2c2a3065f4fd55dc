"""Weights on their way to another generator, by disk: an export, what its files hash to, and what a server must hold.

No torch here: the process that composes a run reads safetensors as plain bytes.
"""

import hashlib
import json
import shutil
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from papo.engines.protocol import Engine
from papo.errors import EngineError

SLOTS = ("a", "b")
"""Written in turn: a server that still reads the last export is never overwritten."""
CARD = "sync.json"
MASK = (1 << 64) - 1
CHUNK = 1 << 22
BITS: dict[str, Any] = {"F32": np.int32, "BF16": np.int16}
DTYPES = {"float32": "F32", "bfloat16": "BF16"}


Sums = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """A policy as a Hugging Face folder, held to what it is."""

    folder: str
    policy_sha256: str
    """Of the learner's tensors in memory when it was written."""
    export_sha256: str
    """Of the names and bytes of the folder's files."""
    sums: dict[str, Sums]
    """By tensor, once it is rounded to the servers' dtype: what `papo_fingerprint` there must say."""
    elements: int
    """Of all tensors."""


class DiskTransport:
    """Exports the open policy into `folder`/a and `folder`/b by turns."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._turn = 0

    def export(self, engine: Engine, *, dtype: str) -> Export:
        """Write what `engine` holds, beside it a card that says what it is. `dtype`: what servers hold it in."""
        held = engine.held
        if held is None:
            raise EngineError("the learner holds no policy, so there are no weights to give to the generator.")
        slot = self._folder / SLOTS[self._turn]
        self._turn = 1 - self._turn
        shutil.rmtree(slot, ignore_errors=True)
        slot.mkdir(parents=True)
        engine.export(str(slot))
        tensors = list(tensors_in(slot))
        made = Export(
            folder=str(slot.resolve()),
            policy_sha256=held.policy_sha256,
            export_sha256=folder_sha256(slot),
            sums={name: bit_sums(name, stored, bits, dtype=dtype) for name, stored, bits in tensors},
            elements=sum(bits.size for _, _, bits in tensors),
        )
        card = {"policy_sha256": made.policy_sha256, "export_sha256": made.export_sha256}
        (slot / CARD).write_text(json.dumps(card))
        return made


def folder_sha256(folder: Path) -> str:
    """Over the names and bytes of its files, without the card."""
    digest = hashlib.sha256()
    for file in sorted(path for path in folder.rglob("*") if path.is_file() and path.name != CARD):
        with file.open("rb") as opened:
            digest.update(f"{file.relative_to(folder)} {hashlib.file_digest(opened, 'sha256').hexdigest()}\n".encode())
    return digest.hexdigest()


def bit_sums(name: str, stored: str, bits: NDArray[Any], *, dtype: str) -> Sums:
    """(Σ b, Σ b·(b >> 5)) modulo 2^64 over a tensor's elements, b an element's bits as a signed integer once it is
    rounded to `dtype`. Raises EngineError where it cannot be."""
    first = second = 0
    for start in range(0, bits.size, CHUNK):
        part = _as_dtype(bits[start : start + CHUNK], stored, DTYPES[dtype], name=name).astype(np.int64)
        first += int(part.sum())
        second += int((part * (part >> 5)).sum())
    return first & MASK, second & MASK


def total(sums: Iterable[Sums]) -> Sums:
    """The sums of several tensors as if they were one."""
    parts = list(sums)
    return sum(part[0] for part in parts) & MASK, sum(part[1] for part in parts) & MASK


def tensors_in(folder: Path) -> Iterator[tuple[str, str, NDArray[Any]]]:
    """(name, dtype, bits) of each tensor of a folder's safetensors files; the bits are mapped, not read."""
    for file in sorted(folder.glob("*.safetensors")):
        with file.open("rb") as opened:
            (size,) = struct.unpack("<Q", opened.read(8))
            header = json.loads(opened.read(size))
        for name, entry in header.items():
            if name == "__metadata__":
                continue
            if entry["dtype"] not in BITS:
                raise EngineError(
                    f"{name} in {file.name} is {entry['dtype']}; a generator is given float32 or bfloat16."
                )
            kind = np.dtype(BITS[entry["dtype"]])
            begin, end = entry["data_offsets"]
            count = (end - begin) // kind.itemsize
            if count:
                yield name, entry["dtype"], np.memmap(file, kind, "r", offset=8 + size + begin, shape=(count,))


def _as_dtype(bits: NDArray[Any], stored: str, wanted: str, *, name: str) -> NDArray[Any]:
    if stored == wanted:
        return bits
    if (stored, wanted) == ("F32", "BF16"):
        # Round to nearest, ties to even, as torch does.
        wide = bits.view(np.uint32).astype(np.uint64)
        return (
            ((wide + 0x7FFF + ((wide >> np.uint64(16)) & np.uint64(1))) >> np.uint64(16))
            .astype(np.uint16)
            .view(np.int16)
        )
    # bfloat16 widened to float32: its bits are the upper half.
    if (stored, wanted) == ("BF16", "F32"):
        return (bits.view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.int32)
    raise EngineError(f"{name} is stored as {stored} and cannot be compared with a generator that holds {wanted}.")
