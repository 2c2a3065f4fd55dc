"""Prompts become ids once, with one begin token and one end token."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tokenizers import processors

from papo.engines.models import chain_tokenizer
from papo.engines.requests import Tokenize, TokenizePairs
from papo.engines.settings import PromptFormat
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


@pytest.mark.parametrize("template", [True, False])
@pytest.mark.parametrize("text", ["2+2", "<bos>2+2", "<bos><bos>2+2"])
@pytest.mark.parametrize(("bos", "count"), [("auto", 1), ("always", 1), ("never", 0)])
def test_bug_034_never_two_begin_tokens_and_by_rule_one_or_none(
    tmp_path: Path, template: bool, text: str, bos: str, count: int
) -> None:
    tokenizer = begin_tokenizer(template=template)
    tokenizer.chat_template = "{{ messages[0]['content'] }}" if template else None
    if template and bos == "auto":
        count = int(text.startswith("<bos>"))
    ids = tokenized(tmp_path, tokenizer, [text], bos=bos)["prompt_ids"][0].to_list()
    assert ids == [tokenizer.bos_token_id] * count + byte_level_tokenizer().encode("2+2", add_special_tokens=False)


def test_a_begin_token_that_the_tokenizer_lacks_cannot_be_asked_for(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"data\.prompt\.bos is always, but the tokenizer has no begin token"):
        tokenized(tmp_path, chain_tokenizer(), ["7-3="], bos="always")


THINKING = (
    "{% for m in messages %}[{{ m['role'] }}]{{ m['content'] }}{% endfor %}[assistant]"
    "{% if enable_thinking is defined and enable_thinking is false %}<think></think>{% endif %}{{ mood }}"
)


def test_switches_reach_the_template(tmp_path: Path) -> None:
    tokenizer = begin_tokenizer()
    tokenizer.chat_template = THINKING
    texts = [
        tokenized(tmp_path, tokenizer, ["a"], **style)["prompt_text"][0]
        for style in ({}, {"enable_thinking": True}, {"enable_thinking": False}, {"template_kwargs": {"mood": "calm"}})
    ]
    plain = "[user]a[assistant]"
    assert texts == [plain, plain, f"{plain}<think></think>", f"{plain}calm"]


def test_names_that_papo_sets_itself_are_no_switches() -> None:
    with pytest.raises(ValueError, match="tokenize, which papo sets itself"):
        PromptFormat(template_kwargs={"tokenize": True})


REFUSES = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}x"
IGNORES = "{% for m in messages %}{% if m['role'] == 'user' %}[user]{{ m['content'] }}{% endif %}{% endfor %}"


@pytest.mark.parametrize(
    ("template", "message"),
    [
        (REFUSES, r"refuses prompt p0 \(roles: system, user\): System role not supported.*data\.prompt\.prefix"),
        (IGNORES, "leaves out the system message of prompt p0.*data.prompt.prefix"),
        ("{{ messages | length + 'x' }}", "refuses prompt p0"),
        ("[user]", "leaves out the system message"),
    ],
)
def test_a_template_that_refuses_or_drops_a_message_is_an_error_of_the_data(
    tmp_path: Path, template: str, message: str
) -> None:
    tokenizer = begin_tokenizer()
    tokenizer.chat_template = template
    with pytest.raises(DataError, match=message):
        tokenized(tmp_path, tokenizer, ["a"], system="be short")


def test_a_template_may_trim_what_it_shows_and_drop_earlier_thoughts(tmp_path: Path) -> None:
    tokenizer = begin_tokenizer()
    tokenizer.chat_template = (
        "{% for m in messages %}{{ '' if m['role'] == 'assistant' else m['content'] | trim }}{% endfor %}"
    )
    turns = [
        {"role": "user", "content": " a "},
        {"role": "assistant", "content": "b"},
        {"role": "user", "content": "c"},
    ]
    assert tokenized(tmp_path, tokenizer, [turns])["prompt_text"][0] == "ac"


def test_a_preview_writes_special_tokens_out(tmp_path: Path) -> None:
    tokenizer = begin_tokenizer(template=False)
    pl.DataFrame({"prompt_id": ["a"], "prompt": ["2+2"]}).write_parquet(tmp_path / "rows.parquet")
    request = Tokenize(model="", rows=str(tmp_path / "rows.parquet"), format=PromptFormat(), output="", preview=True)
    frame = tokenize(request, tokenizer)
    assert frame["prompt_text"][0] == "2+2"
    assert frame["prompt_shown"][0] == "<bos>2+2"
