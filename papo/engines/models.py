"""Model folders: made from nothing, loaded exactly as stored, written so that they load again."""

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

from papo import chains
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
    generation_config: GenerationConfig
    """What the folder had, kept for the export only: its sampling defaults must not reach our decoding."""


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
    decoding = GenerationConfig(eos_token_id=end, pad_token_id=pad)
    write(
        module,
        LoadedModel(module=module, tokenizer=tokenizer, end_ids=(end,), pad_id=pad, generation_config=decoding),
        folder,
    )


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
    if not (folder / "config.json").is_file():
        raise EngineError(f"{folder} is no Hugging Face model folder: it has no config.json.")
    has_weights = any(folder.glob("*.safetensors"))
    if weights and not has_weights:
        raise EngineError(
            f"{folder} has no *.safetensors file. Only safetensors are loaded, as other formats can run code;"
            " convert the model with save_pretrained first."
        )
    tokenizer = load_tokenizer(folder, trust_remote_code=trust_remote_code)
    module = (
        _from_files(folder, dtype=dtype, trust_remote_code=trust_remote_code)
        if has_weights
        else AutoModelForCausalLM.from_config(
            AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=trust_remote_code), dtype=dtype
        )
    )
    stored = module.generation_config
    ends = _end_ids(stored, module.config, tokenizer)
    if not ends:
        raise EngineError(f"{folder} declares no end token, so no completion could ever be finished.")
    pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else ends[0]
    # `generate` fills what a request leaves open from the model's own settings: leave nothing there to be filled in.
    module.generation_config = GenerationConfig()
    module.eval()
    return LoadedModel(module=module, tokenizer=tokenizer, end_ids=ends, pad_id=pad, generation_config=stored)


def write(module: Any, model: LoadedModel, folder: Path, *, state: dict[str, torch.Tensor] | None = None) -> None:
    """Save as a Hugging Face folder, with the tokenizer and decoding defaults of `model`, and check what lies there
    against the module, tensor by tensor (BUG-107).

    `state`: the tensors, where the module itself holds only a part of each, or others than the folder is to have.
    """
    if state is not None:
        _check_names(module, state)
    module.generation_config, neutral = model.generation_config, module.generation_config
    try:
        module.save_pretrained(folder, state_dict=state)
    finally:
        module.generation_config = neutral
    model.tokenizer.save_pretrained(folder)
    expected = dict(module.named_parameters()) if state is None else state
    stored = stored_in(folder)
    for name, tensor in expected.items():
        shape, there = tuple(tensor.shape), _shape(stored[name], name) if name in stored else None
        if 0 in shape or there != (shape, DTYPES.get(tensor.dtype)):
            raise EngineError(
                f"the export of {name} to {folder} failed: {there} was written for a tensor of shape {shape} in"
                f" {tensor.dtype}. Nothing of this folder can be trusted; remove it."
            )


def _check_names(module: Any, state: dict[str, torch.Tensor]) -> None:
    """Raises EngineError unless `state` has the architecture's tensors: each once, a tied one under its first name."""
    with torch.device("meta"):
        fresh = type(module)(module.config)
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


def _end_ids(generation: GenerationConfig, config: Any, tokenizer: Any) -> tuple[int, ...]:
    found: set[int] = set()
    for declared in (generation.eos_token_id, getattr(config, "eos_token_id", None), tokenizer.eos_token_id):
        if declared is not None:
            found.update([declared] if isinstance(declared, int) else declared)
    return tuple(sorted(found))


def _escaped(word: str) -> str:
    return "".join(
        f"\\{character}" if not character.isalnum() and character != "\n" else character for character in word
    )
