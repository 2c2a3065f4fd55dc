"""The managed server lives as long as its users; a run outlives its server."""

import json
import os
import signal
from pathlib import Path

import psutil
import pytest

from flows import server as servers
from flows.server import server
from tests.orchestration.conftest import Training, eventually


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A runs folder without any server named, here or in the user's profile."""
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path / "home"))
    return tmp_path / "runs"


def test_a_server_that_does_not_answer_is_done_without(monkeypatch: pytest.MonkeyPatch, alone: Path) -> None:
    """BUG-139: a PREFECT_API_URL where nobody listens is a message within the limit, and no error."""
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    monkeypatch.setattr(servers, "GIVEN_SECONDS", 0.5)
    with server(alone) as found:
        assert found.url is None
        assert "http://127.0.0.1:9/api" in found.message
        assert "unset PREFECT_API_URL" in found.message


def test_a_server_that_does_not_come_up_is_done_without(alone: Path) -> None:
    """BUG-139: the start has a stated limit; what was started for nothing does not stay."""
    with server(alone, start_seconds=0.3) as found:
        assert found.url is None
        assert "did not answer within" in found.message
    eventually(lambda: not keepers(alone))


DEAD_PROXIES = {
    name: address
    for spelling in (str.upper, str.lower)
    for name, address in (
        (spelling("http_proxy"), "http://127.0.0.1:9"),
        (spelling("https_proxy"), "http://127.0.0.1:9"),
        (spelling("all_proxy"), "socks5h://127.0.0.1:9"),
    )
}


def test_a_dead_proxy_keeps_no_run_from_its_server(undisturbed: Training, alone: Path) -> None:
    """C-13: the managed server is started, asked and shown a run, whatever proxies the environment names."""
    run = Training(alone, "proxied", **DEAD_PROXIES)
    ended = run.end()
    assert ended.code == 0, ended.said
    assert "Prefect UI: http://127.0.0.1:" in ended.said
    assert "No Prefect" not in ended.said
    assert len(run.flow_runs) == 1
    assert run.ledger == undisturbed.ledger


def test_a_server_leaves_the_environment_as_it_was(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, address in DEAD_PROXIES.items():
        monkeypatch.setenv(name, address)
    before = dict(os.environ)
    with server(alone, start_seconds=0.3):
        assert os.environ["NO_PROXY"] == os.environ["no_proxy"] == "127.0.0.1,localhost,::1"
    assert dict(os.environ) == before


def test_the_address_is_taken_from_the_active_profile(monkeypatch: pytest.MonkeyPatch, alone: Path) -> None:
    home = Path(os.environ["PREFECT_HOME"])
    home.mkdir()
    profile = '[profiles.mine]\nPREFECT_API_URL = "http://there/api"\n'
    (home / "profiles.toml").write_text(f'active = "mine"\n{profile}')
    assert servers.given_url() == "http://there/api"
    monkeypatch.setenv("PREFECT_PROFILE", "another")
    assert servers.given_url() is None


def test_the_server_may_die_in_mid_run_and_dies_with_its_last_user(undisturbed: Training, alone: Path) -> None:
    """Two runs share one server. Killing one leaves it to the other; killing the server leaves the run unharmed; and
    when nobody is left, nothing runs. BUG-139: the dead server's noise does not change the exit state."""
    hold = alone.parent / "hold"
    hold.touch()
    killed = Training(alone, "killed", "--hold", str(hold))
    kept = Training(alone, "kept", "--hold", str(hold), "--bookkeeping", "4")
    killed.wait_for("iterations/00000/commit.json")
    kept.wait_for("iterations/00000/commit.json")
    (keeper,) = keepers(alone)
    (child,) = keeper.children()
    killed.signal(signal.SIGKILL)
    killed.end()
    assert child.is_running()
    child.kill()
    hold.unlink()
    ended = kept.end()
    assert ended.code == 0, ended.said
    assert ended.report["state"] == "done"
    assert kept.ledger == undisturbed.ledger
    eventually(lambda: not keepers(alone))


def keepers(runs: Path) -> list[psutil.Process]:
    """Keeper processes of this folder."""
    found: list[psutil.Process] = []
    for process in psutil.process_iter(["cmdline"]):
        line = process.info["cmdline"] or []
        if "flows.server_keeper" in line and str((runs / servers.HOME).resolve()) in line:
            found.append(process)
    return found


def test_the_keeper_is_known_by_its_state_file(alone: Path) -> None:
    """A state file of another boot names nobody."""
    home = alone / servers.HOME
    home.mkdir(parents=True)
    (home / servers.STATE).write_text(json.dumps({"url": "http://there/api", "boot_id": "another"}))
    assert servers._known(home) is None
