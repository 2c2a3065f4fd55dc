"""What the operating system refuses, as one sentence with the way out instead of a traceback."""

import errno
import os

from papo.errors import ConfigError, DiskFull, PapoError, StoreError

_WAYS_OUT = {
    errno.EACCES: "check its permissions and its folder's, or name another place",
    errno.EPERM: "check its permissions and its folder's, or name another place",
    errno.EROFS: "it is on a read-only file system, so name a place that can be written",
    errno.ENOENT: "check the path",
    errno.ENOTDIR: "a part of the path is a file: name a folder",
    errno.EEXIST: "something else is there already: name another place",
    errno.EISDIR: "it is a folder: name a file",
    errno.ELOOP: "its symbolic links lead in a circle: mend them, or name another place",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.EINVAL: "the system does not take this name: choose another",
}
"""For what the caller named wrongly: the way out."""
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def told_of(error: BaseException) -> PapoError | None:
    """The error to tell for one of the system's; None for what is no matter of the system, but a bug."""
    if isinstance(error, OSError):
        return _of_number(error)
    if isinstance(error, RuntimeError) and "home directory" in str(error):
        return _homeless()
    if isinstance(error, KeyError) and "uid not found" in str(error):
        return _homeless()
    return None


def _of_number(error: OSError) -> PapoError | None:
    if error.errno is None:
        return None
    named: object = error.filename
    place = "A file" if named is None else os.fsdecode(named) if isinstance(named, (str, bytes)) else str(named)
    reason = os.strerror(error.errno)
    if error.errno in _FULL:
        return DiskFull(f"{place} cannot be written ({reason}). Free some space; the same command goes on from there.")
    if error.errno in _WAYS_OUT:
        return ConfigError(f"{place} cannot be used ({reason}): {_WAYS_OUT[error.errno]}.")
    return StoreError(f"{place} cannot be used ({reason}). The same command goes on once the system permits it.")


def _homeless() -> ConfigError:
    return ConfigError(
        f"User id {os.getuid()} has no entry among this system's users and no HOME, so there is no home folder: set "
        "HOME to a folder that can be written."
    )
