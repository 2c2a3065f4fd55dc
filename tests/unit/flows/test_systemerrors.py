"""C-14: what the system refuses is told in one sentence; C-19: without what is secret in it."""

import errno
from typing import Any

import pytest
import typer

from flows.output import failures, say
from flows.systemerrors import told_of
from papo.errors import ConfigError, DataError, DiskFull, StoreError


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.EACCES, ConfigError),
        (errno.EPERM, ConfigError),
        (errno.EROFS, ConfigError),
        (errno.ENOTDIR, ConfigError),
        (errno.EEXIST, ConfigError),
        (errno.ENOENT, ConfigError),
        (errno.ENAMETOOLONG, ConfigError),
        (errno.ELOOP, ConfigError),
        (errno.ENOSPC, DiskFull),
        (errno.EDQUOT, DiskFull),
        (errno.EIO, StoreError),
        (errno.EMFILE, StoreError),
    ],
)
def test_c_14_an_error_of_the_system_names_its_place(number: int, kind: type[Exception]) -> None:
    told = told_of(OSError(number, "no", "runs/x"))
    assert type(told) is kind
    assert str(told).startswith("runs/x cannot be ")
    assert "\n" not in str(told)


def test_c_14_no_home_is_told_and_a_bug_is_not() -> None:
    assert "HOME" in str(told_of(RuntimeError("Could not determine home directory.")))
    assert "HOME" in str(told_of(KeyError("getpwuid(): uid not found: 12345")))
    assert told_of(RuntimeError("a bug")) is None
    assert told_of(KeyError("a bug")) is None
    assert told_of(ConnectionError("without a number")) is None


@pytest.mark.parametrize(
    ("error", "code"), [(PermissionError(errno.EACCES, "no", "x"), 2), (OSError(errno.ENOSPC, "no", "x"), 3)]
)
def test_c_14_the_command_ends_by_its_kind(error: OSError, code: int, capsys: Any) -> None:
    with pytest.raises(typer.Exit) as ended, failures():
        raise error
    assert ended.value.exit_code == code
    assert "Traceback" not in capsys.readouterr().err


def test_c_16_c_19_an_error_is_shown_escaped_and_masked(capsys: Any) -> None:
    with pytest.raises(typer.Exit), failures():
        raise DataError("row \x1b[2J\u202e of http://me:word@host")
    assert capsys.readouterr().err.strip() == "DataError: row \\x1b[2J\\u202e of http://…@host"


def test_c_16_markup_and_emoji_codes_are_text(capsys: Any) -> None:
    say("[red]a[/red] :smile: [link=file:///x]b[/link]")
    assert capsys.readouterr().out.strip() == "[red]a[/red] :smile: [link=file:///x]b[/link]"
