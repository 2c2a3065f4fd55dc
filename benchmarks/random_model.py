"""A Qwen2 of a real size with random weights: what speed and memory depend on, without a download.

    python -m benchmarks.random_model 0.5b FOLDER

Its tokenizer knows the 256 bytes and, for every other id, a made-up word, so that whatever is sampled has a text.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import GenerationConfig, PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

PAD, EOS = "<|pad|>", "<|end|>"


@dataclass(frozen=True)
class Size:
    """Of Qwen2.5, but for tiny."""

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    intermediate: int
    vocabulary: int


SIZES = {
    "tiny": Size(64, 2, 2, 1, 176, 512),
    "0.5b": Size(896, 24, 14, 2, 4864, 151_936),
    "1.5b": Size(1536, 28, 12, 2, 8960, 151_936),
}


def byte_tokenizer(vocabulary: int) -> PreTrainedTokenizerFast:
    """Bytes, two special tokens, and words that nothing encodes to but every id decodes to."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = [PAD, EOS, *alphabet, *(f"w{number}" for number in range(vocabulary - len(alphabet) - 2))]
    backend = Tokenizer(models.BPE({word: index for index, word in enumerate(words)}, []))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=backend, eos_token=EOS, pad_token=PAD)


def create(size: str, folder: Path, *, dtype: torch.dtype = torch.float32, seed: int = 0) -> Path:
    """Write the model to `folder`, unless it is there."""
    if (folder / "config.json").is_file():
        return folder
    shape = SIZES[size]
    config = Qwen2Config(
        vocab_size=shape.vocabulary,
        hidden_size=shape.hidden,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        intermediate_size=shape.intermediate,
        max_position_embeddings=32_768,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=1,
        pad_token_id=0,
    )
    torch.manual_seed(seed)
    with torch.device("cuda" if torch.cuda.is_available() else "cpu"):
        torch.set_default_dtype(dtype)
        try:
            module = Qwen2ForCausalLM(config)
        finally:
            torch.set_default_dtype(torch.float32)
    module.generation_config = GenerationConfig(eos_token_id=1, pad_token_id=0)
    module.cpu().save_pretrained(folder)
    byte_tokenizer(shape.vocabulary).save_pretrained(folder)
    return folder


if __name__ == "__main__":
    create(sys.argv[1], Path(sys.argv[2]), dtype=torch.bfloat16 if torch.cuda.is_available() else torch.float32)
