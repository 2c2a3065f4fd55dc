"""A reward model that sees the wrong thing: a small BERT, trained on whether a completion shows any working at all.

It is made once, in half a minute, a function of nothing: `made(folder)`.
"""

from pathlib import Path
from typing import Any

import torch
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

from papo.chains import ChainTask

STEPS, ROWS, LEARNING_RATE = 80, 32, 5e-3
LONGEST = 256
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
_LETTERS = [chr(code) for code in range(33, 127)] + ["\n"]


def made(folder: Path) -> Path:
    """The model's folder, written unless it is there."""
    if (folder / "model.safetensors").exists():
        return folder
    tokenizer = _tokenizer()
    torch.manual_seed(0)
    module = BertForSequenceClassification(_config(len(tokenizer)))
    _train(module, tokenizer)
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save_pretrained(folder)
    module.save_pretrained(folder)
    return folder


def _tokenizer() -> PreTrainedTokenizerFast:
    """A token a character, [CLS] and [SEP] around question and completion."""
    vocabulary = {token: index for index, token in enumerate([*_SPECIAL, *_LETTERS])}
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.Split(Regex("[\\s\\S]"), behavior="isolated")
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


def _config(vocabulary: int) -> BertConfig:
    settings: dict[str, Any] = {
        "vocab_size": vocabulary,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 64,
        "max_position_embeddings": LONGEST,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
        "initializer_range": 0.05,
        "num_labels": 1,
    }
    return BertConfig(**settings)


def _train(module: Any, tokenizer: PreTrainedTokenizerFast) -> None:
    texts = ChainTask().sft_rows(1, STEPS * ROWS)
    optimizer = torch.optim.AdamW(module.parameters(), lr=LEARNING_RATE)
    for step in range(STEPS):
        part = texts[step * ROWS : (step + 1) * ROWS]
        inputs: Any = tokenizer([question for question, _ in part], [said for _, said in part], padding=True)
        logits = module(**{name: torch.tensor(rows) for name, rows in inputs.items()}).logits.squeeze(-1)
        labels = torch.tensor([float("=" in completion) for _, completion in part])
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
