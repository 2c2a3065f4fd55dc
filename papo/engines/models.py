"""Model folders: made from nothing, loaded exactly as stored, written back whole and so that they load again."""

import json
from collections.abc import Generator, Mapping, Set
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from tokenizers import Regex, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import WordLevel
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    GenerationConfig,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
)
from transformers.core_model_loading import revert_weight_conversion
from transformers.modeling_utils import remove_tied_weights_from_state_dict

from papo import chains
from papo.engines.model_folder import CONFIG, GENERATION, follow_umask, json_in, kept_files, write_kept
from papo.engines.settings import TinyModel
from papo.engines.tokenizing import load_tokenizer
from papo.errors import EngineError

PAD, EOS = chains.VOCABULARY[:2]
MAX_POSITIONS = 1024
"""Longest prompt and completion together of a tiny model; its rotary positions cost nothing."""
DTYPES = {torch.float32: "F32", torch.bfloat16: "BF16", torch.float16: "F16", torch.int64: "I64", torch.bool: "BOOL"}
"""As safetensors spells those that parameters and buffers have."""


@dataclass(slots=True, kw_only=True)
class LoadedModel:
    """A causal LM with all that decoding needs. Always in eval mode: dropout would move the ratio of equal weights."""

    module: Any
    tokenizer: Any
    end_ids: tuple[int, ...]
    """Every id that ends a completion; a model may declare several."""
    pad_id: int
    files: Mapping[str, bytes]
    """All that its folder has but the weights, as it was then: what an export gives back."""


def create_tiny(model: TinyModel, folder: Path) -> None:
    """Write a fresh Qwen2-style model over the digit-chain vocabulary; the weights are a function of its settings."""
    tokenizer = chain_tokenizer()
    config = Qwen2Config(
        vocab_size=len(chains.VOCABULARY),
        hidden_size=model.hidden_size,
        num_hidden_layers=model.layers,
        num_attention_heads=model.heads,
        num_key_value_heads=model.kv_heads,
        intermediate_size=model.intermediate_size,
        initializer_range=model.initializer_range,
        max_position_embeddings=MAX_POSITIONS,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=chains.VOCABULARY.index(EOS),
        pad_token_id=chains.VOCABULARY.index(PAD),
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(model.seed)
        module = Qwen2ForCausalLM(config)
    end, pad = chains.VOCABULARY.index(EOS), chains.VOCABULARY.index(PAD)
    module.generation_config = GenerationConfig(eos_token_id=end, pad_token_id=pad)
    module.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    follow_umask(folder, like=CONFIG)


def chain_tokenizer() -> PreTrainedTokenizerFast:
    """One token a word of the chain vocabulary. Encoding any other text raises: the vocabulary has no unknown token."""
    ids = {word: index for index, word in enumerate(chains.VOCABULARY)}
    backend = Tokenizer(WordLevel(ids, unk_token=""))
    words = "|".join(_escaped(word) for word in sorted(chains.VOCABULARY, key=len, reverse=True))
    backend.pre_tokenizer = pre_tokenizers.Split(Regex(words), behavior="isolated")
    # Without a decoder, words would be joined by blanks.
    backend.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, eos_token=EOS, pad_token=PAD, clean_up_tokenization_spaces=False
    )


def load(folder: Path, *, dtype: torch.dtype, trust_remote_code: bool, weights: bool = True) -> LoadedModel:
    """The model of a Hugging Face folder, from safetensors only, every parameter set by the file.

    `weights`: False where the parameters come from a checkpoint next and the folder may hold none.
    Raises EngineError when the folder is no model, or lacks parameters that the architecture has.
    """
    if not (folder / CONFIG).is_file():
        raise EngineError(f"{folder} is no Hugging Face model folder: it has no config.json.")
    has_weights = any(folder.glob("*.safetensors"))
    if weights and not has_weights:
        raise EngineError(
            f"{folder} has no *.safetensors file. Only safetensors are loaded, as other formats can run code;"
            " convert the model with save_pretrained first."
        )
    tokenizer = load_tokenizer(folder, trust_remote_code=trust_remote_code)
    config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=trust_remote_code)
    module = (
        _from_files(folder, dtype=dtype, trust_remote_code=trust_remote_code)
        if has_weights
        else AutoModelForCausalLM.from_config(config, dtype=dtype, trust_remote_code=trust_remote_code)
    )
    ends = _end_ids(folder, module.config, tokenizer)
    if not ends:
        raise EngineError(f"{folder} declares no end token, so no completion could ever be finished.")
    pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else ends[0]
    _check_ids(folder, module, end_ids=ends, pad_id=pad)
    # `generate` fills what a request leaves open from the model's own settings: leave nothing there to be filled in.
    module.generation_config = GenerationConfig()
    module.eval()
    return LoadedModel(module=module, tokenizer=tokenizer, end_ids=ends, pad_id=pad, files=kept_files(folder))


def untie(module: Any, names: Set[str]) -> None:
    """Give tied parameters among `names` a tensor of their own: where a folder's files have other values for the two,
    its model was never tied, whatever its config says."""
    held = dict(module.named_parameters())
    for name in sorted(module.all_tied_weights_keys.keys() & names - held.keys()):
        owner, _, leaf = name.rpartition(".")
        apart = torch.nn.Parameter(module.get_parameter(name).detach().clone())
        setattr(module.get_submodule(owner), leaf, apart)
        del module.all_tied_weights_keys[name]


def write(module: Any, model: LoadedModel, folder: Path, *, state: dict[str, torch.Tensor] | None = None) -> None:
    """Save as a Hugging Face folder, with all that the folder of `model` had beside its weights, and check what lies
    there against the module, tensor by tensor (BUG-107).

    `state`: the tensors, where the module itself holds only a part of each, or others than the folder is to have.
    """
    if state is not None:
        _check_names(module, state)
    expected = _shapes_in_files(module, module.state_dict() if state is None else state)
    with _named_as_published(module):
        module.save_pretrained(folder, state_dict=state)
    stored = stored_in(folder)
    for name, tensor in expected.items():
        shape, there = tuple(tensor.shape), _shape(stored[name], name) if name in stored else None
        if 0 in shape or there != (shape, DTYPES.get(tensor.dtype)):
            raise EngineError(
                f"the export of {name} to {folder} failed: {there} was written for a tensor of shape {shape} in"
                f" {tensor.dtype}. Nothing of this folder can be trusted; remove it."
            )
    dtype = str(module.dtype).removeprefix("torch.")
    # Where a part of what the folder describes is trained, its own config.json would describe more than is written.
    is_whole = json.loads(model.files[CONFIG]).get("model_type") == module.config.model_type
    write_kept(model.files, folder, dtype=dtype, architecture=type(module).__name__ if is_whole else None)
    follow_umask(folder, like=CONFIG)


def in_files(module: Any, state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Tensors in memory as a model folder has them: under other names, and cut in others, for some architectures."""
    with _named_as_published(module):
        return revert_weight_conversion(module, remove_tied_weights_from_state_dict(dict(state), module))


@contextmanager
def _named_as_published(module: Any) -> Generator[None]:
    """Names are those of the architecture's published folders, whatever older ones the module was loaded from: a
    checkpoint, which it is resumed from, does not know them."""
    loaded_by = module.__dict__.pop("_weight_conversions", None)
    try:
        yield
    finally:
        if loaded_by is not None:
            module._weight_conversions = loaded_by


def _shapes_in_files(module: Any, state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """What `in_files` would give, without the contents."""
    left_out: set[str] = set(module._keys_to_ignore_on_save or ())
    kept = {name: tensor for name, tensor in state.items() if name not in left_out}
    whole = remove_tied_weights_from_state_dict(kept, module)
    with _named_as_published(module):
        return revert_weight_conversion(module, {name: tensor.to("meta") for name, tensor in whole.items()})


def _check_names(module: Any, state: dict[str, torch.Tensor]) -> None:
    """Raises EngineError unless `state` has the architecture's tensors: each once, a tied one under its first name."""
    with torch.device("meta"):
        fresh = type(module)(module.config)
        untie(fresh, fresh.all_tied_weights_keys.keys() - module.all_tied_weights_keys.keys())
    wanted = {name: tuple(parameter.shape) for name, parameter in fresh.named_parameters()}
    buffers = {name for name, _ in fresh.named_buffers()}
    given = {name: tuple(tensor.shape) for name, tensor in state.items() if name not in buffers}
    wrong = sorted(name for name in wanted.keys() | given.keys() if wanted.get(name) != given.get(name))
    if wrong:
        raise EngineError(
            f"the export of {wrong[0]} failed before it was written: {given.get(wrong[0])} is given where the"
            f" architecture has {wanted.get(wrong[0])} ({len(wrong)} such tensors)."
        )


def stored_in(folder: Path, pattern: str = "*.safetensors") -> dict[str, Any]:
    """For each tensor of a folder's safetensors files the open file that has it: nothing is read yet."""
    found: dict[str, Any] = {}
    for file in sorted(folder.glob(pattern)):
        opened: Any = safe_open(file, framework="pt")
        found |= dict.fromkeys(opened.keys(), opened)
    return found


def _shape(file: Any, name: str) -> tuple[tuple[int, ...], str]:
    part = file.get_slice(name)
    return tuple(part.get_shape()), part.get_dtype()


def _from_files(folder: Path, *, dtype: torch.dtype, trust_remote_code: bool) -> Any:
    # `dtype=` and never `.to(dtype)`: the latter also casts the rotary buffers, which moves log-probs by up to 0.2.
    loaded: Any = AutoModelForCausalLM.from_pretrained(
        folder,
        dtype=dtype,
        use_safetensors=True,
        local_files_only=True,
        trust_remote_code=trust_remote_code,
        output_loading_info=True,
    )
    module, report = loaded
    wrong = sorted(report["missing_keys"]) + sorted(str(key) for key in report["mismatched_keys"])
    if wrong:
        raise EngineError(f"{folder} lacks weights that its architecture has: {', '.join(wrong[:5])} ({len(wrong)}).")
    return module


def _end_ids(folder: Path, config: Any, tokenizer: Any) -> tuple[int, ...]:
    """All that the folder declares, in any of the three places. From the file and not from the module, which knows of
    it only where it was loaded with its weights (C-02)."""
    found: set[int] = set()
    for declared in (
        json_in(folder, GENERATION).get("eos_token_id"),
        getattr(config.get_text_config(), "eos_token_id", None),
        getattr(config, "eos_token_id", None),
        tokenizer.eos_token_id,
    ):
        if declared is not None:
            found.update([declared] if isinstance(declared, int) else declared)
    return tuple(sorted(found))


def _check_ids(folder: Path, module: Any, *, end_ids: tuple[int, ...], pad_id: int) -> None:
    """Raises EngineError where an id that every batch is built with is no row of the embedding."""
    rows = module.get_input_embeddings().weight.shape[0]
    wrong = [index for index in (*end_ids, pad_id) if not 0 <= index < rows]
    if wrong:
        what = "its padding" if wrong[0] == pad_id else "one of its end tokens"
        raise EngineError(
            f"{folder} names token id {wrong[0]} as {what}, but the model's embedding has {rows} rows. Correct"
            f" tokenizer_config.json, config.json or {GENERATION}, or add the rows to the model."
        )


def _escaped(word: str) -> str:
    return "".join(
        f"\\{character}" if not character.isalnum() and character != "\n" else character for character in word
    )
