"""Three ways to make bytes durable under a name: replace it, take it once, or publish a whole folder.

A name appears only when its bytes are safe: write under a temporary name, sync, give the name, sync the folder.
Whatever is left under a temporary name after a crash is swept away when the run is next opened.
"""

import os

from papo.errors import DiskFull
from tasks.disk import Disk

TEMPORARY = ".tmp-"


def parent(path: str) -> str:
    """The folder that a name is in."""
    return os.path.dirname(path) or "."


def temporary(disk: Disk, path: str) -> str:
    """A name beside `path` that no reader looks at; one a writer, so that two writers do not share it."""
    return os.path.join(os.path.dirname(path), f"{TEMPORARY}{disk.writer}-{os.path.basename(path)}")


def ensure_folder(disk: Disk, path: str) -> None:
    """Create a folder durably (its parents exist already)."""
    if not disk.exists(path):
        disk.make_folder(path)
    # Even where it exists: its creator may have died before its name was synced.
    disk.sync_folder(parent(path))


def replace(disk: Disk, path: str, data: bytes) -> None:
    """Give `path` the content `data`, all or nothing."""
    draft = _draft(disk, path, data)
    disk.rename(draft, path)
    disk.sync_folder(parent(path))


def create_once(disk: Disk, path: str, data: bytes) -> bool:
    """Give `path` the content `data` if nobody has taken the name; False if somebody has."""
    draft = _draft(disk, path, data)
    try:
        disk.link(draft, path)
    except FileExistsError:
        return False
    finally:
        disk.remove(draft)
    disk.sync_folder(parent(path))
    return True


def publish_folder(disk: Disk, staged: str, path: str) -> None:
    """Give the folder `staged`, whose files are all in place, the name `path`. Files and folders are synced first."""
    for file in disk.walk(staged):
        disk.sync(os.path.join(staged, file))
    folders = {os.path.dirname(os.path.join(staged, file)) for file in disk.walk(staged)} | {staged}
    for folder in sorted(_with_parents(folders, staged), reverse=True):
        disk.sync_folder(folder)
    disk.rename(staged, path)
    disk.sync_folder(parent(path))


def sweep(disk: Disk, folder: str) -> None:
    """Remove what a dead writer left under temporary names in `folder`."""
    for name in disk.names(folder):
        if name.startswith(TEMPORARY):
            path = os.path.join(folder, name)
            # A folder's draft is a tree; `walk` of a file is empty and so is `list`.
            if disk.names(path) or disk.walk(path):
                disk.remove_tree(path)
            else:
                _remove_any(disk, path)


def _draft(disk: Disk, path: str, data: bytes) -> str:
    draft = temporary(disk, path)
    try:
        disk.write(draft, data)
        disk.sync(draft)
    except DiskFull:
        if disk.exists(draft):
            disk.remove(draft)
        raise
    return draft


def _with_parents(folders: set[str], top: str) -> set[str]:
    found: set[str] = set()
    for folder in folders:
        above = folder
        while above and above not in found:
            found.add(above)
            above = "" if above == top else os.path.dirname(above)
    return found


def _remove_any(disk: Disk, path: str) -> None:
    try:
        disk.remove(path)
    except (IsADirectoryError, PermissionError):
        disk.remove_tree(path)
