"""Tiny models that score texts, made on the spot: a decoder with a chat template, a BERT with word pieces."""

from pathlib import Path
from typing import Any

import torch
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen2ForSequenceClassification,
    Qwen2ForTokenClassification,
)

CHAT_SPECIAL = ("<|pad|>", "<|im_start|>", "<|im_end|>")
LETTERS = [chr(code) for code in range(32, 127)] + ["\n"]
TEMPLATE = "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
POSITIONS = 64


def letter_tokenizer() -> PreTrainedTokenizerFast:
    """A token a printable character, and the special ones of a chat."""
    vocabulary = {token: index for index, token in enumerate([*CHAT_SPECIAL, *LETTERS, "<unk>"])}
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.Split(Regex("[\\s\\S]"), behavior="isolated")
    backend.decoder = decoders.Fuse()
    made = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token="<|pad|>",
        eos_token="<|im_end|>",
        additional_special_tokens=["<|im_start|>"],
        clean_up_tokenization_spaces=False,
    )
    made.chat_template = TEMPLATE
    return made


def word_tokenizer() -> PreTrainedTokenizerFast:
    """BERT's way: lower case, one word piece a character, [CLS] and [SEP] around one text or two."""
    vocabulary = {token: index for index, token in enumerate(WORDS)}
    for letter in [letter for letter in LETTERS if letter.strip() and letter == letter.lower()]:
        for piece in (letter, f"##{letter}"):
            vocabulary[piece] = len(vocabulary)
    backend = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer()
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )


def decoder(folder: Path, kind: str = "classifier", **settings: Any) -> Path:
    """A Qwen2 with a head of that kind, weights drawn large enough for scores to differ."""
    tokenizer = letter_tokenizer()
    usual: dict[str, Any] = {
        "vocab_size": len(tokenizer),
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "intermediate_size": 24,
        "max_position_embeddings": 4 * POSITIONS,
        "initializer_range": 0.4,
        "num_labels": 1,
        "pad_token_id": 0,
        "bos_token_id": None,
        "eos_token_id": None,
    }
    made = {
        "classifier": Qwen2ForSequenceClassification,
        "token_classifier": Qwen2ForTokenClassification,
        "next_token": Qwen2ForCausalLM,
    }[kind]
    return written(made, Qwen2Config(**(usual | settings)), tokenizer, folder)


def encoder(folder: Path, **settings: Any) -> Path:
    """A BERT with a classifier over [CLS]."""
    tokenizer = word_tokenizer()
    usual: dict[str, Any] = {
        "vocab_size": len(tokenizer),
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 24,
        "max_position_embeddings": POSITIONS,
        "initializer_range": 0.4,
        "num_labels": 1,
        "pad_token_id": 0,
    }
    return written(BertForSequenceClassification, BertConfig(**(usual | settings)), tokenizer, folder)


def written(kind: Any, config: Any, tokenizer: Any, folder: Path) -> Path:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        module = kind(config)
    module.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
