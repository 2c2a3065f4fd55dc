"""Whether a model folder's safetensors files are whole, and its tokenizer's ids are rows of its embedding.

Only headers are read, so this takes the same fraction of a second for a large model. The library's own message for a
file that is cut short does not name it.
"""

import json
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

INDEX = "model.safetensors.index.json"
_LONGEST_HEADER = 100_000_000
"""As in the library."""
_EMBEDDING = re.compile(r"(^|\.)(embed_tokens|embed_in|wte|word_embeddings|tok_embeddings|embeddings)\.weight$")


class _Unreadable(Exception):
    """What is wrong with a file."""


def weight_faults(folder: Path) -> list[str]:
    """What is wrong with its files of weights, each named."""
    headers, found = _headers(folder), list[str]()
    for file, header in headers.items():
        if isinstance(header, _Unreadable):
            found.append(f"{file}, which {header}")
    for tensor, file in sorted(_weight_map(folder).items()):
        header = headers.get(file)
        if isinstance(header, dict) and tensor not in header:
            found.append(f"{file}, which lacks {tensor}, though {INDEX} says that it is there")
            break
    return found


def id_faults(folder: Path, *, generates: bool) -> list[str]:
    """Tokens whose id is no row of the embedding, the first of them named; none where either is not known.

    `generates`: whether the end tokens that the folder declares are used.
    """
    table = _embedding(folder)
    if table is None:
        return []
    name, rows = table
    beyond = sorted((index, token) for token, index in _tokens(folder).items() if index >= rows)
    if beyond:
        index, token = beyond[0]
        more = f" ({len(beyond)} such tokens)" if len(beyond) > 1 else ""
        return [f"a tokenizer with the token {token!r} of id {index}{more}, but {name} has only {rows} rows"]
    for file in ("generation_config.json", "config.json"):
        said = _object(folder / file).get("eos_token_id")
        ids = cast("list[Any]", said) if isinstance(said, list) else [said]
        wrong = [index for index in ids if isinstance(index, int) and index >= rows]
        if generates and wrong:
            return [f"eos_token_id {wrong[0]} in {file}, but {name} has only {rows} rows"]
    return []


def _headers(folder: Path) -> dict[str, "dict[str, Any] | _Unreadable"]:
    """Of the files that would be loaded, by name."""
    names = sorted(set(_weight_map(folder).values())) or [path.name for path in sorted(folder.glob("*.safetensors"))]
    found: dict[str, dict[str, Any] | _Unreadable] = {}
    for name in names:
        if not (folder / name).is_file():
            continue
        try:
            found[name] = _header(folder / name)
        except _Unreadable as fault:
            found[name] = fault
    return found


def _header(path: Path) -> dict[str, Any]:
    size = path.stat().st_size
    try:
        with path.open("rb") as file:
            start = file.read(8)
            if len(start) < 8:
                raise _Unreadable(f"has {size} bytes: it is empty or cut short")
            (length,) = struct.unpack("<Q", start)
            if length > min(size - 8, _LONGEST_HEADER):
                raise _Unreadable(f"has {size} bytes, fewer than its header alone: it is cut short or damaged")
            header = json.loads(file.read(length))
            tensors = {name: entry for name, entry in header.items() if name != "__metadata__"}
            end = max((int(entry["data_offsets"][1]) for entry in tensors.values()), default=0)
    except OSError as error:
        raise _Unreadable(f"cannot be read ({error.strerror})") from None
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        raise _Unreadable("has a damaged header") from None
    if size != 8 + length + end:
        raise _Unreadable(f"has {size} bytes where its header says {8 + length + end}: it is cut short or damaged")
    return tensors


def _embedding(folder: Path) -> tuple[str, int] | None:
    """The name and the rows of the input embedding; where its tensor goes by an unusual name, what config.json says."""
    headers = [header for header in _headers(folder).values() if isinstance(header, dict)]
    named = [(name, header[name]) for header in headers for name in header if _EMBEDDING.search(name)]
    if len(named) == 1 and len(named[0][1].get("shape") or ()) == 2:
        return named[0][0], int(named[0][1]["shape"][0])
    config = _object(folder / "config.json")
    inner = config.get("text_config")
    rows = config.get("vocab_size") or (cast("dict[str, Any]", inner).get("vocab_size") if inner else None)
    return ("the embedding (vocab_size in config.json)", rows) if isinstance(rows, int) else None


def _tokens(folder: Path) -> dict[str, int]:
    """Ids by token, from whichever of the files that tokenizers are stored in are there."""
    whole = _object(folder / "tokenizer.json")
    model = whole.get("model")
    vocabulary = cast("dict[str, Any]", model).get("vocab") if isinstance(model, dict) else None
    found: dict[str, int] = {}
    if isinstance(vocabulary, dict):
        found.update(_numbered(vocabulary.items()))
    elif isinstance(vocabulary, list):
        # Pairs of a piece and its score.
        pieces = cast("list[list[Any]]", vocabulary)
        found.update({str(piece[0]): index for index, piece in enumerate(pieces)})
    if not whole:
        found.update(_numbered(_object(folder / "vocab.json").items()))
    added = whole.get("added_tokens")
    for entry in cast("list[dict[str, Any]]", added) if isinstance(added, list) else []:
        found.update(_numbered([(entry.get("content"), entry.get("id"))]))
    found.update(_numbered(_object(folder / "added_tokens.json").items()))
    declared = _object(folder / "tokenizer_config.json").get("added_tokens_decoder")
    for index, entry in cast("dict[str, Any]", declared).items() if isinstance(declared, dict) else ():
        if isinstance(entry, dict) and str(index).isdigit():
            found[str(cast("dict[str, Any]", entry).get("content"))] = int(index)
    return found


def _numbered(pairs: Any) -> Iterator[tuple[str, int]]:
    return ((str(token), index) for token, index in pairs if isinstance(index, int))


def _weight_map(folder: Path) -> dict[str, str]:
    found = _object(folder / INDEX).get("weight_map")
    pairs = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    return {name: str(file) for name, file in pairs.items()}


def _object(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}
