"""Source of custom rewards and files of models beside the policy, kept in the run: whole or not at all (C-05)."""

from random import Random

import pytest

from tests.simulation.disk import Crash, Faults, SimDisk
from tests.simulation.schedules import check_ended, expected, run_schedule
from tests.simulation.world import Machine

FIRST = {"aaaa/reward.py": b"import pack.inner", "aaaa/pack/__init__.py": b"", "aaaa/pack/inner.py": b"ONE = 1"}
SECOND = {name.replace("aaaa", "bbbb"): data + b"\n" for name, data in FIRST.items()}
BESIDE = {"critic": {"config.json": b"{}", "deep/er/template.jinja": b"x"}, "implicit_prm": {"config.json": b"{}"}}


def files_in(disk: SimDisk, folder: str) -> dict[str, bytes]:
    return {name: disk.read(f"{folder}/{name}") for name in disk.walk(folder)}


def is_kept(line: str) -> bool:
    """Whether an operation is one of keeping these files."""
    return any(part in line for part in (" code", "/code", " beside", "/beside", "aaaa", "bbbb"))


def machine(code: dict[str, bytes]) -> Machine:
    return Machine(code=code, beside=BESIDE)


def begun(at: int | None) -> SimDisk:
    """A run that was started under the first code, and that crashes at an operation."""
    disk = SimDisk(Random(at or 0), Faults(crash_at=at))
    machine(FIRST).run(disk)
    return disk


def halfway(at: int) -> SimDisk:
    """A run that has committed an iteration, opened again."""
    disk = SimDisk(Random(at))
    machine(FIRST).run(disk, limit=1)
    return disk.after_crash(writer="w1")


def check_kept(disk: SimDisk, code: dict[str, bytes], *, named: str) -> None:
    assert files_in(disk, "code") == code, f"{named}: the code is not what is kept"
    assert {role: files_in(disk, f"beside/{role}") for role in disk.names("beside")} == BESIDE, named


def test_c_05_a_crash_at_each_operation_that_keeps_a_file_of_a_new_run() -> None:
    steps = [number for number, line in enumerate(begun(None).log, start=1) if is_kept(line)]
    assert len(steps) > 20
    for at in steps:
        disk = SimDisk(Random(at), Faults(crash_at=at))
        with pytest.raises(Crash):
            machine(FIRST).run(disk)
        disk = disk.after_crash(writer="w1")
        machine(FIRST).run(disk)
        check_ended(disk, expected(), named=f"operation {at}")
        check_kept(disk, FIRST, named=f"operation {at}")


def test_c_05_a_crash_at_each_operation_that_keeps_other_code_of_a_run_that_goes_on() -> None:
    """As an amendment does."""
    whole = halfway(0)
    machine(SECOND).run(whole)
    steps = [number for number, line in enumerate(whole.log, start=1) if is_kept(line)]
    assert len(steps) > 8
    for at in steps:
        disk = halfway(at)
        disk.faults = Faults(crash_at=at)
        with pytest.raises(Crash):
            machine(SECOND).run(disk)
        disk = disk.after_crash(writer="w2")
        machine(SECOND).run(disk)
        check_ended(disk, expected(), named=f"operation {at}")
        check_kept(disk, FIRST | SECOND, named=f"operation {at}")


def test_c_05_kept_files_survive_the_schedules() -> None:
    for seed in range(12):
        disk = run_schedule(seed, process=machine(FIRST).run)
        check_ended(disk, expected(), named=f"seed {seed}")
        check_kept(disk, FIRST, named=f"seed {seed}")


def test_c_05_a_copy_that_was_torn_and_counts_as_kept_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulation can fail: source that is written under its name at once, without a draft."""

    def keep_at_once(disk: SimDisk, code: dict[str, bytes]) -> None:
        for name, data in code.items():
            folders = f"code/{name}".split("/")[:-1]
            for depth in range(1, len(folders) + 1):
                if not disk.exists("/".join(folders[:depth])):
                    disk.make_folder("/".join(folders[:depth]))
            if not disk.exists(f"code/{name}"):
                disk.write(f"code/{name}", data)

    monkeypatch.setattr("tasks.identity.keep_code", keep_at_once)
    with pytest.raises(AssertionError):
        test_c_05_a_crash_at_each_operation_that_keeps_a_file_of_a_new_run()
