"""A tiny random model of each family of causal LMs, with the digit chains' vocabulary and tokenizer."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import AutoModelForCausalLM, GenerationConfig

from papo import chains
from papo.engines.models import chain_tokenizer

_SIZES = {
    "vocab_size": 24,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 60,
    "initializer_range": 0.2,
}
"""60 positions: no multiple of what widths are rounded to (C-23)."""
_EXPERTS = {"num_experts": 4, "num_local_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 24}
_GPT2 = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 60, "vocab_size": 24, "initializer_range": 0.2}
_BLOOM = {"hidden_size": 32, "n_layer": 2, "n_head": 4, "vocab_size": 24, "initializer_range": 0.2}
_LONGROPE = {"rope_type": "longrope", "rope_theta": 10000.0, "long_factor": [2.0, 3.0, 4.0, 6.0]}
_SHORT_FACTOR = {"short_factor": [1.0, 1.1, 1.2, 1.3]}
_FALCON = {
    "vocab_size": 24,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_kv_heads": 2,
    "new_decoder_architecture": True,
    "initializer_range": 0.2,
    "max_position_embeddings": 60,
}

FAMILIES: dict[str, tuple[str, Mapping[str, Any]]] = {
    "Llama": ("LlamaConfig", _SIZES),
    "Qwen2": ("Qwen2Config", _SIZES | {"tie_word_embeddings": True}),
    "Qwen3": ("Qwen3Config", _SIZES),
    "Qwen3-MoE": ("Qwen3MoeConfig", _SIZES | _EXPERTS),
    "Mistral": ("MistralConfig", _SIZES | {"sliding_window": 12}),
    "Mixtral": ("MixtralConfig", _SIZES | _EXPERTS),
    "Gemma 2": ("Gemma2Config", _SIZES | {"sliding_window": 12, "query_pre_attn_scalar": 8}),
    "Gemma 3": ("Gemma3TextConfig", _SIZES | {"sliding_window": 12, "query_pre_attn_scalar": 8}),
    "Phi-3": ("Phi3Config", _SIZES | {"pad_token_id": 0}),
    "Phi-3 LongRoPE": (
        "Phi3Config",
        _SIZES
        | {"pad_token_id": 0, "max_position_embeddings": 120, "original_max_position_embeddings": 60}
        | {"rope_parameters": _LONGROPE | _SHORT_FACTOR},
    ),
    "Phi-3 LongRoPE passed": (
        "Phi3Config",
        _SIZES
        | {"pad_token_id": 0, "original_max_position_embeddings": 24}
        | {"rope_parameters": _LONGROPE | {"short_factor": _LONGROPE["long_factor"]}},
    ),
    "Llama dynamic": ("LlamaConfig", _SIZES | {"rope_parameters": {"rope_type": "dynamic", "factor": 2.0}}),
    "GPT-2": ("GPT2Config", _GPT2),
    "GPT-NeoX": ("GPTNeoXConfig", _SIZES | {"tie_word_embeddings": True, "use_parallel_residual": True}),
    "OLMo-2": ("Olmo2Config", _SIZES),
    "StarCoder2": ("Starcoder2Config", _SIZES | {"sliding_window": 12}),
    "Falcon": ("FalconConfig", _FALCON),
    "SmolLM3": ("SmolLM3Config", _SIZES | {"no_rope_layer_interval": 2}),
    "Cohere": ("CohereConfig", _SIZES),
    "Granite": ("GraniteConfig", _SIZES | {"logits_scaling": 2.0, "embedding_multiplier": 3.0}),
    "StableLM": ("StableLmConfig", _SIZES),
    "BLOOM": ("BloomConfig", _BLOOM),
    "OPT": ("OPTConfig", _SIZES | {"ffn_dim": 48, "word_embed_proj_dim": 32}),
}
"""By name: the class of its config, and what that is made with."""


def make(family: str, folder: Path) -> None:
    """Write a family's model with two end tokens of which config.json knows one (C-02), and decoding defaults that
    transformers itself would not write."""
    kind, sizes = FAMILIES[family]
    end, pad = (chains.VOCABULARY.index(token) for token in ("<eos>", "<pad>"))
    config = getattr(transformers, kind)(**{**sizes, "eos_token_id": end, "pad_token_id": pad, "bos_token_id": None})
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        module = AutoModelForCausalLM.from_config(config)
        _disturb(module)
    module.generation_config = GenerationConfig(eos_token_id=end, pad_token_id=pad)
    module.save_pretrained(folder)
    chain_tokenizer().save_pretrained(folder)
    settings = {"eos_token_id": [end, 5], "pad_token_id": pad, "temperature": 0.6, "top_p": 0.95, "do_sample": False}
    (folder / "generation_config.json").write_text(json.dumps(settings))


def _disturb(module: Any) -> None:
    """Random numbers where a fresh model has ones and zeros, so that a tensor that is lost or swapped is seen."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.05)
