"""Records as they are on the disk: read, held to their form, and hashed as they were written."""

import json
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import ValidationError

from papo.errors import Damaged
from schemas.canonical import sha256_of
from schemas.records import Commit, Record

R = TypeVar("R", bound=Record)


def parsed(record: type[R], data: bytes, path: str) -> R:
    """The record that a file holds. Raises Damaged, naming the file, where it holds none."""
    try:
        return record.model_validate_json(data)
    except ValidationError as error:
        raise Damaged(
            f"{path} is not a whole {record.__name__} record ({error.error_count()} faults, {len(data)} bytes): it was "
            "changed or cut after it was written. Restore it from a copy of the run directory, or start a new run."
        ) from None


@dataclass(frozen=True)
class StoredCommit:
    """A commit's file. Its fields are those that were written, whatever a later papo would add to them."""

    path: str
    data: bytes
    fields: dict[str, Any]
    """All but the fencing token, which the hash leaves out."""
    sha256: str
    """Over the fields as they were written."""

    @classmethod
    def read(cls, data: bytes, path: str) -> "StoredCommit":
        """Raises Damaged, naming the file, for bytes that are no commit."""
        try:
            fields: dict[str, Any] = json.loads(data)
            del fields["fencing_token"]
            found = cls(path=path, data=data, fields=fields, sha256=sha256_of(fields))
            _ = found.iteration, found.previous, found.entries, found.summary, found.policy_sha256
        except (ValueError, KeyError, TypeError) as error:
            parsed(Commit, data, path)
            raise Damaged(f"{path} is no commit ({error}). Restore it from a copy of the run directory.") from None
        return found

    @property
    def record(self) -> Commit:
        """The commit, held to its form."""
        return parsed(Commit, self.data, self.path)

    @property
    def iteration(self) -> int:
        return self.fields["iteration"]

    @property
    def previous(self) -> str | None:
        return self.fields["previous"]

    @property
    def entries(self) -> list[dict[str, Any]]:
        return self.fields["entries"]

    @property
    def summary(self) -> dict[str, Any]:
        return self.fields["summary"]

    @property
    def policy_sha256(self) -> str:
        return self.fields["state"]["policy"]["fingerprint"]["policy_sha256"]
