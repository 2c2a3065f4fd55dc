"""What a run takes from outside: everything that the simulation replaces."""

from collections.abc import Callable
from dataclasses import dataclass

from papo.engines.generators import Embedded, Generator
from papo.engines.protocol import Engine
from papo.engines.settings import EngineSettings
from papo.judges import Judge
from schemas.config import RunConfig
from tasks.clock import Clock
from tasks.disk import Disk
from tasks.lock import Lease
from tasks.modelfiles import Weights, files_sha256
from tasks.run import RawData, Reporter
from tasks.runfile import RunFile


@dataclass(frozen=True)
class Surroundings:
    disk: Disk
    base: str
    """The folder that relative paths in the config are relative to."""
    clock: Clock
    lease: Callable[[], Lease]
    engine: Callable[[EngineSettings], Engine]
    sources: Callable[[RunConfig], dict[str, RawData]]
    """The data, by split."""
    model: Callable[[RunConfig], tuple[str, dict[str, bytes]]]
    """The first policy's folder, and its config and tokenizer files."""
    reporter: Reporter
    advancing: bool = True
    """False: the run is only looked at, so what is outside it need not be what it was, nor be there."""
    generator: Callable[[RunConfig], Generator] = lambda config: Embedded()
    judge: Judge | None = None
    hashed: Callable[[str], str] = files_sha256
    """What a model folder's files hash to."""
    pinned: Callable[[RunConfig], tuple[RunConfig, dict[str, bytes]]] = lambda config: (config, {})
    """The config with the hashes of what decides results outside it, and the code that is to be kept, by its path."""
    remaining: Callable[[RunConfig], dict[str, RawData]] | None = None
    """The same without the splits whose file is gone; None: none can be."""
    is_called: Callable[[str], bool] = lambda run_id: False
    """Whether the run's folder goes by this name too: a link, another spelling."""
    found_model: Callable[[RunFile], str] = lambda run_file: run_file.model
    """Where the first policy's folder is now."""
    near: Callable[[str], str] = lambda path: path
    """The way to a path from the run's folder."""
    beside: Callable[[RunConfig], dict[str, dict[str, bytes]]] = lambda config: {}
    """Config and tokenizer files of each model that starts from a folder of its own: critic, implicit_prm."""
    weights: Callable[[RunFile], Weights] = lambda run_file: {}
    """Files of weights of the model folders that a run starts from, as they are now."""
