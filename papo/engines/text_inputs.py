"""From a question and a completion to the ids that a scoring model is given, and what cannot be given to it.

A completion is whatever a policy wrote: where it spells a special token out (`<|im_end|>`, `[SEP]`), that is text here
and never becomes the token, so that nobody can end their own turn and praise themselves in the next one.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, cast

from jinja2 import TemplateError
from tokenizers import Encoding

from papo.engines.text_models import ChatInput, ModelInput, PairInput, Truncate
from papo.errors import EngineError

Turns = list[tuple[str, str]]
"""Role and content of each message, the completion last."""
_MARKER = re.compile(r"<[|\uff5c].*[|\uff5c]>")
_PRIVATE = range(0xE000, 0xF900)


class NotGiven(Exception):
    """A row that the model cannot be given as it is; `status` is what the row's verdict gets."""

    def __init__(self, reason: str, *, status: Literal["unscorable", "error"] = "unscorable") -> None:
        super().__init__(reason)
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """One row's input."""

    ids: list[int]
    types: list[int]
    """Which text of a pair each token belongs to."""
    last: int
    """Position of the text's last token, what the tokenizer puts behind it left out."""


class TextEncoder:
    """Makes a model's inputs by its own tokenizer. Raises EngineError where that one cannot do what is asked for."""

    def __init__(self, tokenizer: Any, *, input: ModelInput, max_length: int | None, truncate: Truncate | None) -> None:
        if not getattr(tokenizer, "is_fast", False):
            raise EngineError("the scoring model's tokenizer has no tokenizer.json: save it in that form first.")
        if isinstance(input, ChatInput) and not tokenizer.chat_template:
            raise EngineError("input.kind is chat, but the scoring model's tokenizer has no chat template: use text.")
        self.tokenizer, self.max_length = tokenizer, max_length
        self._input, self._truncate = input, truncate
        self._special = _special_tokens(tokenizer)

    def __call__(self, question: str, completion: str) -> Given:
        """Raises NotGiven, with the reason, where the row is too long or the chat template refuses it."""
        turns = [*_turns(question), ("assistant", completion)]
        if isinstance(self._input, ChatInput):
            if self._input.system is not None and turns[0][0] != "system":
                turns = [("system", self._input.system), *turns]
            encoding = self._guarded(self._templated, turns)
        else:
            backend = self.tokenizer.backend_tokenizer
            asked = "\n\n".join(content for _, content in turns[:-1])
            if isinstance(self._input, PairInput):
                first, second = self._plain(asked), self._plain(completion)
                encoding = backend.post_process(first, second)
            else:
                template = self._input.template
                encoding = backend.post_process(
                    self._guarded(lambda parts: _filled(template, parts), [("user", asked), turns[-1]])
                )
        return self._cut(encoding)

    def _templated(self, turns: Turns) -> str:
        messages = [{"role": role, "content": content} for role, content in turns]
        try:
            text = self.tokenizer.apply_chat_template(messages, tokenize=False)
        except (TemplateError, TypeError, ValueError, KeyError) as error:
            roles = ", ".join(role for role, _ in turns)
            raise NotGiven(f"the chat template refuses it (roles: {roles}): {error}", status="error") from error
        for role, content in turns:
            if content.strip() not in text:
                raise NotGiven(f"the chat template leaves out a part of the {role} message: use input.kind text")
        return text

    def _guarded(self, render: Callable[[Turns], str], turns: Turns) -> Encoding:
        """The tokens of a text, special ones only where `render` itself writes them."""
        hidden: list[str] = []
        mark = next(chr(code) for code in _PRIVATE if all(chr(code) not in content for _, content in turns))

        def hide(found: "re.Match[str]") -> str:
            hidden.append(found[0])
            return f"{mark}{len(hidden) - 1}{mark}"

        text = render([(role, self._special.sub(hide, content)) for role, content in turns])
        # One piece where nothing was hidden: the ids that the tokenizer gives to the whole text.
        pieces = re.split(f"{mark}(\\d+){mark}", text)
        parts: list[Encoding] = []
        for place, piece in enumerate(pieces):
            if place % 2:
                spelled = hidden[int(piece)]
                # In two, since a marker that is added but not special is found in any text that has it whole.
                parts += [self._plain(spelled[:1]), self._plain(spelled[1:])]
            elif piece:
                parts.append(self._encoded(piece, special=True))
        return Encoding.merge(parts, growing_offsets=False)

    def _plain(self, text: str) -> Encoding:
        return self._encoded(text, special=False)

    def _encoded(self, text: str, *, special: bool) -> Encoding:
        backend = self.tokenizer.backend_tokenizer
        backend.no_truncation()
        backend.no_padding()
        backend.encode_special_tokens = not special
        return backend.encode(text, add_special_tokens=False)

    def _cut(self, encoding: Encoding) -> Given:
        """The row as it is, or without its middle or beginning; what the tokenizer put around it stays."""
        ids, types, around = list(encoding.ids), list(encoding.type_ids), list(encoding.special_tokens_mask)
        text = [place for place, put in enumerate(around) if not put]
        if not text:
            raise NotGiven("it has no tokens")
        excess = 0 if self.max_length is None else len(ids) - self.max_length
        if excess > 0:
            if self._truncate is None:
                raise NotGiven(f"it has {len(ids)} tokens, above the model's max_length of {self.max_length}")
            if excess >= len(text):
                raise NotGiven(f"max_length is {self.max_length}, which leaves no token of the text")
            first = 0 if self._truncate == "left" else (len(text) - excess) // 2
            gone = set(text[first : first + excess])
            kept = [place for place in range(len(ids)) if place not in gone]
            ids, types, around = ([row[place] for place in kept] for row in (ids, types, around))
        last = max(place for place, put in enumerate(around) if not put)
        return Given(ids=ids, types=types, last=last)


def _special_tokens(tokenizer: Any) -> "re.Pattern[str]":
    """What spells a special token, or a marker of a chat that its tokenizer calls a plain one (`<｜User｜>`)."""
    added = cast("dict[int, Any]", tokenizer.added_tokens_decoder).values()
    marks = {str(token.content) for token in added if token.special or _MARKER.fullmatch(str(token.content))}
    spelled = marks | set(tokenizer.all_special_tokens)
    longest_first = sorted(filter(None, spelled), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first)) or "(?!)")


def _filled(template: str, turns: Turns) -> str:
    """In one pass: a question that spells `{completion}` is a question all the same."""
    (_, question), (_, completion) = turns
    words = {"{question}": question, "{completion}": completion}
    return re.sub(r"\{question\}|\{completion\}", lambda found: words[found[0]], template)


def _turns(question: str) -> Turns:
    """A question's messages: it is one of a user's, or chat messages as JSON."""
    if question.startswith("["):
        try:
            messages = json.loads(question)
            turns = [(str(message["role"]), str(message["content"])) for message in messages]
        except (ValueError, TypeError, KeyError):
            turns = []
        if turns:
            return turns
    return [("user", question)]
