"""What a model folder's own files say about a run config: its chat template and its positions, without loading it."""

import json
import re
from pathlib import Path
from typing import Any, cast

from papo.engines.text_models import Room, positions_in, room_in
from schemas.config import RunConfig
from schemas.faults import Fault
from schemas.filechecks import resolve
from schemas.generators import VllmGenerator


def model_faults(config: RunConfig, base: Path) -> list[Fault]:
    """What a run on this folder would fail of, later and at greater cost."""
    folder = _folder(config, base)
    if folder is None:
        return []
    style, found = config.data.prompt, list[Fault]()
    if style.chat == "always" and template_of(folder) is None and not config.model.trust_remote_code:
        text = f"is always, but the tokenizer in {config.model.path} has no chat template: use never."
        found.append(Fault(("data", "prompt", "chat"), text))
    if style.bos == "always" and not _json(folder / "tokenizer_config.json").get("bos_token", "unknown"):
        text = f"is always, but the tokenizer in {config.model.path} has no begin token: use auto."
        found.append(Fault(("data", "prompt", "bos"), text))
    room, positions, generator = _room(folder), _positions(folder), config.generator
    longest = config.sampling.max_completion_length
    if room is not None and longest >= room.tokens:
        text = (
            f"is {longest}, but the model in {config.model.path} has {room.limit}, which prompt and completion share:"
            f" lower it, so that a prompt fits before it{room.way_out}."
        )
        found.append(Fault(("sampling", "max_completion_length"), text))
    if positions is None or not isinstance(generator, VllmGenerator) or generator.servers != "managed":
        return found
    wanted = generator.max_model_len or needed_length(config)
    if wanted > positions:
        said = "is null, so that" if generator.max_model_len is None else f"is {wanted}, so that"
        text = (
            f"{said} a server would have to take {wanted} tokens, but the model in {config.model.path} has {positions}"
            " positions and vLLM refuses to start: lower it, or sampling.max_prompt_length or max_completion_length."
        )
        found.append(Fault(("generator", "max_model_len"), text))
    return found


def model_warnings(config: RunConfig, base: Path) -> list[str]:
    """What is legal but hardly meant with this folder, one sentence each."""
    folder = _folder(config, base)
    if folder is None:
        return []
    found: list[str] = []
    template, style = template_of(folder), config.data.prompt
    switches = [*(["enable_thinking"] if style.enable_thinking is not None else []), *style.template_kwargs]
    if switches and (template is None or style.chat == "never"):
        found.append(
            f"data.prompt sets {', '.join(switches)}, but no chat template is used, which alone would read it."
        )
    elif template is not None:
        unread = [name for name in switches if re.search(rf"\b{re.escape(name)}\b", template) is None]
        if unread:
            found.append(
                f"data.prompt sets {', '.join(unread)}, which the chat template in {config.model.path} never reads: it"
                " has no effect."
            )
    room, needed = _room(folder), needed_length(config)
    if room is not None and needed > room.tokens:
        found.append(
            f"sampling.max_prompt_length and max_completion_length together are {needed} tokens, but the model in"
            f" {config.model.path} has {room.limit}: a prompt of more than"
            f" {room.tokens - config.sampling.max_completion_length} tokens will be refused."
        )
    return found


def needed_length(config: RunConfig) -> int:
    """Tokens of the longest prompt and completion together."""
    return config.sampling.max_prompt_length + config.sampling.max_completion_length


def template_of(folder: Path) -> str | None:
    """The folder's chat template; of several, all in one text."""
    file = folder / "chat_template.jinja"
    if file.is_file():
        return file.read_text(encoding="utf-8", errors="replace")
    declared = _json(folder / "tokenizer_config.json").get("chat_template")
    if isinstance(declared, list):
        named = cast("list[dict[str, Any]]", declared)
        return "\n".join(str(each.get("template")) for each in named)
    return declared if isinstance(declared, str) else None


def _folder(config: RunConfig, base: Path) -> Path | None:
    """The model folder, where the config names one that is there; a cold start makes its own later."""
    folder = None if config.model.path is None else resolve(config.model.path, base)
    return folder if folder is not None and (folder / "config.json").is_file() else None


def _room(folder: Path) -> Room | None:
    return room_in(_json(folder / "config.json"))


def _positions(folder: Path) -> int | None:
    return positions_in(_json(folder / "config.json"))


def _json(path: Path) -> dict[str, Any]:
    """An object in a file; empty where there is none that can be read."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}
