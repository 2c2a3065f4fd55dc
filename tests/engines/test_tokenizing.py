"""Prompts become ids once, with one begin token and one end token."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tokenizers import processors

from papo.engines.models import chain_tokenizer
from papo.engines.protocol import PromptFormat, Tokenize, TokenizePairs
from papo.engines.tokenizing import load_tokenizer, tokenize, tokenize_pairs
from papo.errors import DataError
from tests.engines.test_decoding import byte_level_tokenizer

TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}[{{ m['role'] }}]{{ m['content'] }}{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)


def begin_tokenizer(*, template: bool = True) -> Any:
    """A tokenizer that prepends its begin token, as Llama's does, with a template that writes it too."""
    tokenizer = byte_level_tokenizer()
    tokenizer.add_special_tokens({"bos_token": "<bos>"})
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="<bos> $A", special_tokens=[("<bos>", tokenizer.bos_token_id)]
    )
    if template:
        tokenizer.chat_template = TEMPLATE
    return tokenizer


def tokenized(folder: Path, tokenizer: Any, prompts: list[Any], **style: Any) -> pl.DataFrame:
    messages = [not isinstance(prompt, str) for prompt in prompts]
    texts = [prompt if isinstance(prompt, str) else json.dumps(prompt) for prompt in prompts]
    names = [f"p{index}" for index in range(len(prompts))]
    pl.DataFrame({"prompt_id": names, "prompt": texts, "is_messages": messages}).write_parquet(folder / "rows.parquet")
    request = Tokenize(model="", rows=str(folder / "rows.parquet"), format=PromptFormat(**style), output="")
    return tokenize(request, tokenizer)


@pytest.mark.parametrize("prompt", ["what is 2+2?", [{"role": "user", "content": "what is 2+2?"}]])
def test_bug_034_one_begin_token_through_the_template(tmp_path: Path, prompt: Any) -> None:
    tokenizer = begin_tokenizer()
    frame = tokenized(tmp_path, tokenizer, [prompt], system="short")
    ids = frame["prompt_ids"][0].to_list()
    assert ids.count(tokenizer.bos_token_id) == 1
    assert ids[0] == tokenizer.bos_token_id
    assert frame["prompt_text"][0] == "<bos>[system]short[user]what is 2+2?[assistant]"


def test_a_template_that_writes_no_begin_token_gets_none(tmp_path: Path) -> None:
    tokenizer = begin_tokenizer()
    tokenizer.chat_template = TEMPLATE.removeprefix("{{ bos_token }}")
    ids = tokenized(tmp_path, tokenizer, ["a"])["prompt_ids"][0].to_list()
    assert tokenizer.bos_token_id not in ids


@pytest.mark.parametrize("text", ["2+2", "<bos>2+2"])
def test_bug_034_one_begin_token_without_a_template(tmp_path: Path, text: str) -> None:
    tokenizer = begin_tokenizer(template=False)
    ids = tokenized(tmp_path, tokenizer, [text])["prompt_ids"][0].to_list()
    assert ids == [tokenizer.bos_token_id, *byte_level_tokenizer().encode("2+2", add_special_tokens=False)]


def test_a_tokenizer_without_begin_token_gets_none(tmp_path: Path) -> None:
    frame = tokenized(tmp_path, chain_tokenizer(), ["7-3="])
    assert frame["prompt_ids"][0].to_list() == [13, 17, 9, 18]
    assert frame.schema == {"prompt_id": pl.String, "prompt_text": pl.String, "prompt_ids": pl.List(pl.Int32)}


def test_prefix_and_suffix_surround_plain_prompts_only(tmp_path: Path) -> None:
    tokenizer = begin_tokenizer()
    messages = [{"role": "user", "content": "b"}]
    texts = tokenized(tmp_path, tokenizer, ["a", messages], prefix="<", suffix=">")["prompt_text"].to_list()
    assert texts == ["<bos>[user]<a>[assistant]", "<bos>[user]b[assistant]"]


def test_chat_never_leaves_plain_prompts_plain_and_refuses_messages(tmp_path: Path) -> None:
    assert tokenized(tmp_path, begin_tokenizer(), ["a"], chat="never")["prompt_text"][0] == "a"
    with pytest.raises(DataError, match="p0 is chat messages"):
        tokenized(tmp_path, begin_tokenizer(), [[{"role": "user", "content": "a"}]], chat="never")


def test_a_missing_template_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="p0 needs a chat template"):
        tokenized(tmp_path, begin_tokenizer(template=False), ["a"], chat="always")


def test_text_outside_the_vocabulary_is_an_error_of_the_data(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be put in tokens"):
        tokenized(tmp_path, chain_tokenizer(), ["7-3=?"])
    with pytest.raises(DataError, match="has no tokens"):
        tokenized(tmp_path, chain_tokenizer(), [""])


@pytest.mark.parametrize("completion", ["<answer>4</answer>", "<answer>4</answer><eos>"])
def test_pairs_end_in_exactly_one_end_token(tmp_path: Path, completion: str) -> None:
    path = tmp_path / "pairs.parquet"
    pl.DataFrame({"prompt": ["7-3="], "completion": [completion], "style": ["guess"]}).write_parquet(path)
    request = TokenizePairs(model="", rows=str(path), format=PromptFormat(), output="")
    frame = tokenize_pairs(request, chain_tokenizer())
    assert frame["completion_ids"][0].to_list() == [4, 10, 5, 1]
    assert frame.columns == ["style", "prompt_ids", "completion_ids"]


def test_the_chain_tokenizer_survives_its_folder(tmp_path: Path) -> None:
    chain_tokenizer().save_pretrained(tmp_path)
    loaded = load_tokenizer(tmp_path, trust_remote_code=False)
    text = "<think>7-3=4\n4+2=6</think><answer>6</answer><eos>"
    assert loaded.encode(text) == chain_tokenizer().encode(text)
    assert (loaded.eos_token_id, loaded.pad_token_id) == (1, 0)
