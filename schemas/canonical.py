"""One spelling of every record, so that equal records have equal hashes on any machine."""

import hashlib
import json
from typing import Any

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def canonical_json(record: Any) -> bytes:
    """UTF-8 JSON with sorted keys, no blanks and no NaN.

    Raises ValueError for a float that is not finite: such a number has no JSON spelling and must be null by now.
    """
    return _ENCODER.encode(record).encode()


def sha256_of(record: Any) -> str:
    """Hex SHA-256 of a record's canonical spelling."""
    return hashlib.sha256(canonical_json(record)).hexdigest()
