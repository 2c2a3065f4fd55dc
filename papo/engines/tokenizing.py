"""From text to ids, once: chat template, begin token and end token are settled here and nowhere else."""

import json
from pathlib import Path
from typing import Any, Literal

import polars as pl
from jinja2 import TemplateError
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from papo.engines.requests import Tokenize, TokenizePairs
from papo.engines.settings import PromptFormat
from papo.errors import DataError, EngineError


def load_tokenizer(folder: Path, *, trust_remote_code: bool) -> Any:
    """The folder's tokenizer, left as it is: no token is added, so that it stays the one of the weights."""
    if not folder.is_dir():
        raise EngineError(f"{folder} is no folder, so it holds no tokenizer.")
    loader = PreTrainedTokenizerFast if _is_plain(folder) else AutoTokenizer
    return loader.from_pretrained(folder, local_files_only=True, trust_remote_code=trust_remote_code)


def _is_plain(folder: Path) -> bool:
    """Whether the folder says that its tokenizer.json is all there is to its tokenizer.

    AutoTokenizer would go by the model's type instead, and rebuild a Qwen2 model's tokenizer with Qwen2's own rules: it
    then drops every token that those rules do not find, without a word.
    """
    config = folder / "tokenizer_config.json"
    declared = json.loads(config.read_text()).get("tokenizer_class") if config.is_file() else None
    return declared in ("TokenizersBackend", "PreTrainedTokenizerFast") and (folder / "tokenizer.json").is_file()


def tokenize(request: Tokenize, tokenizer: Any) -> pl.DataFrame:
    """prompt_id, prompt_text, prompt_ids of every row, in the order of the rows."""
    rows = pl.read_parquet(request.rows)
    texts, ids = _prompts(rows, request.format, tokenizer)
    frame = pl.DataFrame(
        {"prompt_id": rows["prompt_id"], "prompt_text": texts, "prompt_ids": ids},
        schema_overrides={"prompt_text": pl.String, "prompt_ids": pl.List(pl.Int32)},
    )
    if not request.preview:
        return frame
    return frame.with_columns(prompt_shown=pl.Series([tokenizer.decode(row) for row in ids], dtype=pl.String))


def tokenize_pairs(request: TokenizePairs, tokenizer: Any) -> pl.DataFrame:
    """The rows without prompt and completion, with prompt_ids and completion_ids; the latter end in one end token."""
    rows = pl.read_parquet(request.rows)
    _, prompt_ids = _prompts(rows, request.format, tokenizer)
    completion_ids = [with_end(encode(tokenizer, text), tokenizer) for text in rows["completion"]]
    return rows.drop("prompt", "completion", "is_messages", strict=False).with_columns(
        pl.Series("prompt_ids", prompt_ids, dtype=pl.List(pl.Int32)),
        pl.Series("completion_ids", completion_ids, dtype=pl.List(pl.Int32)),
    )


def encode(tokenizer: Any, text: str) -> list[int]:
    """The ids of `text` alone, special tokens that it spells out included, none added.

    Raises DataError when the vocabulary has no token for a part of it.
    """
    try:
        return list(tokenizer.encode(text, add_special_tokens=False))
    except Exception as error:  # the tokenizers library raises this very class
        raise DataError(f"the text {text[:60]!r} cannot be put in tokens: {error}") from error


def with_end(ids: list[int], tokenizer: Any) -> list[int]:
    """`ids` ending in exactly one end token."""
    end = tokenizer.eos_token_id
    return ids if ids and ids[-1] == end else [*ids, end]


def with_begin(
    ids: list[int], tokenizer: Any, *, rule: Literal["auto", "always", "never"], templated: bool
) -> list[int]:
    """`ids` of a prompt with one begin token or none, by the rule of `PromptFormat.bos`, whatever the text spells out.

    Raises DataError where there is to be one and the tokenizer has none.
    """
    begin: int | None = tokenizer.bos_token_id
    if begin is None:
        if rule == "always":
            raise DataError("data.prompt.bos is always, but the tokenizer has no begin token: use auto.")
        return ids
    bare = next((ids[place:] for place, index in enumerate(ids) if index != begin), [])
    written = len(bare) < len(ids)
    # A template writes its own begin token as text, where it wants one.
    usual = written or (not templated and list(tokenizer.encode(""))[:1] == [begin])
    return [begin, *bare] if rule == "always" or (rule == "auto" and usual) else bare


def _prompts(rows: pl.DataFrame, style: PromptFormat, tokenizer: Any) -> tuple[list[str], list[list[int]]]:
    names = rows["prompt_id"] if "prompt_id" in rows.columns else range(rows.height)
    is_messages = rows["is_messages"] if "is_messages" in rows.columns else [False] * rows.height
    texts: list[str] = []
    ids: list[list[int]] = []
    for name, prompt, messages in zip(names, rows["prompt"], is_messages, strict=True):
        text, templated = _text(str(name), prompt, messages, style, tokenizer)
        texts.append(text)
        ids.append(with_begin(encode(tokenizer, text), tokenizer, rule=style.bos, templated=templated))
        if not ids[-1]:
            raise DataError(f"prompt {name} has no tokens. A model needs at least one to go on from.")
    return texts, ids


def _text(name: str, prompt: str, is_messages: bool, style: PromptFormat, tokenizer: Any) -> tuple[str, bool]:
    """The text of one prompt, and whether the chat template made it."""
    templated = style.chat == "always" or (style.chat == "auto" and (is_messages or bool(tokenizer.chat_template)))
    if not templated:
        if is_messages:
            raise DataError(f"prompt {name} is chat messages but data.prompt.chat is never: use auto, or plain text.")
        return f"{style.prefix}{prompt}{style.suffix}", False
    if not tokenizer.chat_template:
        raise DataError(f"prompt {name} needs a chat template but the tokenizer has none: set data.prompt.chat: never.")
    messages: list[dict[str, str]] = (
        json.loads(prompt) if is_messages else [{"role": "user", "content": f"{style.prefix}{prompt}{style.suffix}"}]
    )
    if style.system is not None and messages[0]["role"] != "system":
        messages = [{"role": "system", "content": style.system}, *messages]
    return _rendered(name, messages, style, tokenizer), True


def _rendered(name: str, messages: list[dict[str, str]], style: PromptFormat, tokenizer: Any) -> str:
    """What the chat template makes of `messages`. Raises DataError where it refuses them or drops what they say."""
    switches: dict[str, Any] = dict(style.template_kwargs)
    if style.enable_thinking is not None:
        switches["enable_thinking"] = style.enable_thinking
    try:
        text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True, **switches)
    except (TemplateError, TypeError, ValueError, KeyError) as error:
        roles = ", ".join(message["role"] for message in messages)
        raise DataError(
            f"the chat template refuses prompt {name} (roles: {roles}): {error}. Set data.prompt.system: null and"
            " put the instruction in data.prompt.prefix, correct template_kwargs, or set data.prompt.chat: never."
        ) from error
    for message in messages:
        if message["role"] != "assistant" and message["content"].strip() not in text:
            raise DataError(
                f"the chat template leaves out the {message['role']} message of prompt {name}, so the policy would"
                " never see it. Put what it says in data.prompt.prefix, or use another template."
            )
    return text
