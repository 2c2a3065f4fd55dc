"""What the engine's processes have taken at most, as the system counts it."""

from pathlib import Path

from papo.engines.protocol import Engine


def peak_memory(engine: Engine) -> int | None:
    """Largest resident memory of the engine's processes so far, in bytes; None where the system does not tell."""
    pids: tuple[int, ...] = getattr(engine, "pids", ())
    peaks = [_high_water(pid) for pid in pids]
    return sum(peak for peak in peaks if peak is not None) or None


def _high_water(pid: int) -> int | None:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return None
    line = next((line for line in status.splitlines() if line.startswith("VmHWM:")), None)
    return int(line.split()[1]) * 1024 if line else None
