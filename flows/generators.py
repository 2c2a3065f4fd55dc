"""From a config's generator section to what samples: the learner itself, or vLLM servers."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import cast

from papo.engines.generators import Embedded, Generator
from papo.engines.group import has_gpu
from papo.errors import ConfigError
from schemas.config import RunConfig
from schemas.generators import VllmGenerator
from schemas.modelchecks import needed_length

PROBE_LENGTH = 320
"""Tokens that the log-prob probe would like to have."""
SERVED_ALONE = 0.9
"""Share of the GPU's memory for a server that nobody shares it with."""


def generator_in(folder: Path, config: RunConfig) -> Generator:
    """The generator of the run in `folder`; nothing is started yet.

    Raises ConfigError where vLLM's environment or the variable with the API key is not there.
    """
    section = config.generator
    if not isinstance(section, VllmGenerator):
        return Embedded()
    # httpx is imported only where a run needs it.
    from papo.engines.vllm_generator import VllmGenerator as Servers  # noqa: PLC0415
    from papo.engines.vllm_generator import VllmSettings  # noqa: PLC0415
    from papo.engines.vllm_install import require  # noqa: PLC0415
    from papo.engines.vllm_server import ServerSettings  # noqa: PLC0415

    if section.servers == "managed":
        require(section.environment)
    return Servers(
        VllmSettings(
            server=ServerSettings(
                environment=section.environment,
                dtype=section.dtype or config.engine.dtype,
                max_model_len=section.max_model_len or max(needed_length(config), PROBE_LENGTH),
                gpu_memory_utilization=section.gpu_memory_utilization,
                cache_gib=section.cpu_cache_gib,
                threads=section.cpu_threads,
                sleeps=sleeps(section, gpu=has_gpu() and config.engine.device != "cpu"),
                trust_remote_code=config.model.trust_remote_code,
                start_seconds=section.start_seconds,
            ),
            urls=None if section.servers == "managed" else section.servers,
            num_servers=section.num_servers,
            gpus=section.gpus,
            seeded=section.seeded,
            concurrency=section.concurrency,
            request_seconds=section.request_seconds,
            api_key=_api_key(section.api_key_env),
        ),
        scratch=folder / "sync",
        logs=folder / "logs",
    )


def sleeps(section: VllmGenerator, *, gpu: bool) -> bool:
    """Whether servers give their memory back during the update."""
    if section.sleep != "auto":
        return section.sleep == "always"
    return gpu and section.servers == "managed" and section.gpus is None


def install_vllm(folder: Path, *, build: str, say: Callable[[str], None]) -> None:
    """Make vLLM's environment in `folder`, unless it is there."""
    # Like httpx above: only the command that needs it pays for the import.
    from papo.engines.vllm_install import PACKAGES, Build, install  # noqa: PLC0415

    if build not in ("auto", *PACKAGES):
        raise ConfigError(f"--build {build} is unknown: use auto, {' or '.join(PACKAGES)}.")
    install(folder, build=cast("Build", build), say=say)


def serve_vllm(model: Path, *, port: int, dtype: str, max_model_len: int, environment: Path) -> None:
    """Become a vLLM server on loopback, with what a run needs of it. Returns only by an error."""
    # Only the command that needs it pays for the import.
    from papo.engines.vllm_install import require  # noqa: PLC0415
    from papo.engines.vllm_server import ServerSettings, server_command, server_environment  # noqa: PLC0415

    require(str(environment))
    if not (model / "config.json").is_file():
        raise ConfigError(f"{model} is no Hugging Face folder: it has no config.json.")
    settings = ServerSettings(
        environment=str(environment),
        dtype=dtype,
        max_model_len=max_model_len,
        gpu_memory_utilization=SERVED_ALONE,
        threads=len(os.sched_getaffinity(0)),
        sleeps=True,
    )
    command = server_command(str(model), settings, host="127.0.0.1", port=port)
    os.execve(command[0], command, server_environment(settings, scratch=environment))


def _api_key(variable: str | None) -> str | None:
    if variable is None:
        return None
    key = os.environ.get(variable)
    if not key:
        raise ConfigError(f"generator.api_key_env names {variable}, which is not set: export it before the run starts.")
    return key
