"""Life and death of the rank processes."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import psutil
import pytest

from papo.engines.group import rank_environment
from papo.engines.host import EngineHost
from papo.engines.reaping import start_time
from papo.engines.requests import Open
from papo.engines.settings import EngineSettings
from papo.errors import EngineDied, EngineError, EngineStalled
from tests.engines import support
from tests.engines.conftest import Bench

ROOT = Path(__file__).resolve().parents[2]


def is_gone(pid: int, *, within: float = 10.0) -> bool:
    """Whether the process has ended; a zombie that its new parent has not collected yet has."""
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        if start_time(pid) is None or Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
            return True
        time.sleep(0.05)
    return False


def owner(folder: Path, body: str) -> subprocess.Popen[str]:
    """A process that starts an engine as `host`, prints its rank's pid, and goes on with `body`."""
    script = f"""
        import os, signal, sys, threading, time
        from pathlib import Path
        from papo.engines.host import EngineHost
        from papo.engines.settings import EngineSettings
        folder = Path({str(folder)!r})
        host = EngineHost(EngineSettings(device="cpu"), log=folder / "ranks.log", pid_file=folder / "pids.json")
        host.start()
        print(*host.pids, flush=True)
    """
    source = textwrap.dedent(script) + textwrap.dedent(body)
    return subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, text=True, cwd=ROOT)


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_the_parent_stays_light() -> None:
    script = (
        "import sys; from papo.engines.host import EngineHost; from papo.engines.settings import EngineSettings;"
        "print(sorted({'torch', 'transformers', 'deepspeed'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_no_secret_of_the_owner_reaches_a_rank(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_SECRET_ACCESS_KEY", "HF_TOKEN", "WANDB_API_KEY", "MLFLOW_TRACKING_PASSWORD", "DATABASE_URL"):
        monkeypatch.setenv(name, "secret")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    environment = rank_environment(EngineSettings(threads=3, ranks=2), rank=1, port="5", scratch=tmp_path)
    assert "secret" not in environment.values()
    assert environment["CUDA_VISIBLE_DEVICES"] == "1"
    assert (environment["RANK"], environment["WORLD_SIZE"], environment["OMP_NUM_THREADS"]) == ("1", "2", "3")


def test_verbs_before_start_say_so(tmp_path: Path) -> None:
    host = EngineHost(EngineSettings(), log=tmp_path / "log")
    with pytest.raises(EngineDied, match="not running"):
        host.save(str(tmp_path))
    host.close()


def test_a_bad_model_folder_is_an_error_and_the_engine_goes_on(bench: Bench, tmp_path: Path) -> None:
    bench.open()
    with pytest.raises(EngineError, match=r"no config\.json") as caught:
        bench.host.open(Open(model=str(tmp_path)))
    assert not isinstance(caught.value, EngineDied)
    assert bench.host.held is None
    with pytest.raises(EngineError, match="no policy is open"):
        bench.host.save(str(tmp_path / "checkpoint"))
    pids = bench.host.pids
    fingerprint = bench.host.open(Open(model=str(bench.model)))
    assert bench.host.held == fingerprint
    assert bench.host.pids == pids


def test_weights_in_other_formats_are_refused(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text((bench.model / "config.json").read_text())
    (tmp_path / "pytorch_model.bin").write_bytes(b"pickle")
    bench.open()
    with pytest.raises(EngineError, match="Only safetensors are loaded"):
        bench.host.open(Open(model=str(tmp_path)))


def test_a_killed_rank_is_reported_and_a_new_start_gives_an_empty_engine(bench: Bench) -> None:
    bench.open()
    (pid,) = bench.host.pids
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(EngineDied, match=r"killed by SIGKILL[\s\S]*Last lines of") as caught:
        bench.host.export("never")
    assert "ranks.log" in str(caught.value)
    assert bench.host.held is None
    assert bench.host.pids == ()
    with pytest.raises(EngineDied, match="not running"):
        bench.host.export("never")
    bench.host.start()
    with pytest.raises(EngineError, match="no policy is open"):
        bench.host.export("never")


def test_a_rank_that_hangs_is_ended_at_the_deadline(tmp_path: Path) -> None:
    host = EngineHost(EngineSettings(device="cpu"), log=tmp_path / "log", start_seconds=0.2)
    with pytest.raises(EngineDied, match="did not answer in time"):
        host.start()
    assert host.pids == ()


def test_an_interrupt_in_the_middle_of_a_verb_ends_the_group(bench: Bench, tmp_path: Path) -> None:
    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    bench.open()
    (pid,) = bench.host.pids
    rollouts = tmp_path / "rollouts.parquet"
    support.sample(bench.host, bench.prompts, rollouts)
    advantages = support.write_advantages(support.sample(bench.host, bench.prompts, rollouts), tmp_path / "a.parquet")
    request = support.update_request(bench.prompts, rollouts, advantages)
    with pytest.raises(KeyboardInterrupt):
        bench.host.update(request, progress=interrupt)
    assert bench.host.held is None
    assert is_gone(pid)
    bench.open()


def test_progress_is_told(bench: Bench, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    bench.open()
    support.sample(
        bench.host, bench.prompts, tmp_path / "r.parquet", progress=lambda done, total: told.append((done, total))
    )
    total = support.GROUPS * support.SAMPLES * support.LONGEST
    assert told
    assert all(0 < done <= total == of for done, of in told)


def test_ranks_die_with_a_killed_owner(tmp_path: Path) -> None:
    process = owner(tmp_path, "time.sleep(100)")
    pid = int(first_line(process))
    process.kill()
    process.wait()
    assert is_gone(pid)


def test_ranks_die_with_an_owner_that_started_them_from_a_thread(tmp_path: Path) -> None:
    """The kernel's signal follows the thread, so such a rank has the pipe alone, and must outlive the thread."""
    process = owner(
        tmp_path,
        """
        host.close()
        thread = threading.Thread(target=host.start)
        thread.start()
        thread.join()
        time.sleep(0.5)
        print(*host.pids, host.environment["device"], flush=True)
        time.sleep(100)
        """,
    )
    first_line(process)
    pid, device = first_line(process).split()
    assert device == "cpu"
    assert not is_gone(int(pid), within=0.5)
    process.kill()
    process.wait()
    assert is_gone(int(pid))


def test_ranks_end_when_the_owner_returns_without_closing(tmp_path: Path) -> None:
    process = owner(tmp_path, "")
    pid = int(first_line(process))
    assert process.wait(30) == 0
    assert is_gone(pid)
    assert not (tmp_path / "pids.json").exists()


def test_ctrl_c_in_the_owner_does_not_reach_the_ranks(tmp_path: Path) -> None:
    process = owner(
        tmp_path,
        """
        signal.signal(signal.SIGINT, lambda *_: None)
        os.kill(os.getpid(), signal.SIGINT)
        for pid in host.pids:
            os.kill(pid, signal.SIGINT)
        time.sleep(0.5)
        try:
            host.save("x")
        except Exception as error:
            print(type(error).__name__, flush=True)
        """,
    )
    first_line(process)
    assert first_line(process) == "EngineError"
    process.wait(30)


def test_a_stale_group_of_a_dead_owner_is_ended_at_the_next_start(tmp_path: Path) -> None:
    orphan = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"], start_new_session=True)
    record = {
        "boot_id": Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
        "pids": [orphan.pid],
        "start_times": [start_time(orphan.pid)],
    }
    (tmp_path / "pids.json").write_text(json.dumps(record))
    host = support.new_host(tmp_path)
    assert orphan.wait(10) == -signal.SIGKILL
    assert json.loads((tmp_path / "pids.json").read_text())["pids"] == list(host.pids)
    host.close()


def test_a_stale_compilation_lock_cannot_hang_the_start(tmp_path: Path, bench: Bench) -> None:
    """A run that was killed while DeepSpeed compiled its shared-memory operator leaves this lock behind."""
    for operator in ("deepspeed_shm_comm", "py311_cpu/deepspeed_shm_comm"):
        folder = tmp_path / "torch_extensions" / operator
        folder.mkdir(parents=True)
        (folder / "lock").touch()
    host = support.new_host(tmp_path)
    assert host.open(Open(model=str(bench.model))).optimizer_steps == 0
    host.close()
    compiled = [path for path in (tmp_path / "torch_extensions").rglob("*") if path.is_file() and path.name != "lock"]
    assert compiled == []


def test_c_08_a_rank_that_is_stopped_is_ended_by_its_silence_and_a_slow_one_is_not(
    bench: Bench, tmp_path: Path
) -> None:
    """SIGSTOP: no word, no processor time. The owner does not wait for ever; what works for longer is left alone."""
    bench.open()
    bench.host.silence_seconds = 1.0
    rollouts = tmp_path / "rollouts.parquet"
    support.sample(bench.host, bench.prompts, rollouts)
    (pid,) = bench.host.pids
    os.kill(pid, signal.SIGSTOP)
    with pytest.raises(EngineStalled, match=rf"rank 0 \(pid {pid}\) is stopped") as caught:
        bench.host.export(str(tmp_path / "never"))
    assert caught.value.exit_code == 3
    assert bench.host.pids == ()
    assert not psutil.pid_exists(pid)
    bench.host.start()
    bench.open()
    support.sample(bench.host, bench.prompts, rollouts)
