"""How many tokens prompts have after the template, in a process of its own, for it needs the model's tokenizer.

`python -m papo.engines.prompt_lengths MODEL ROWS.parquet OUTPUT.parquet --format JSON`: rows as `Tokenize` has them;
the output has prompt_id and tokens, in the same order.
"""

import argparse
import sys
from pathlib import Path

import polars as pl
from pydantic import TypeAdapter

from papo.engines.requests import Tokenize
from papo.engines.settings import PromptFormat
from papo.errors import PapoError


def main(arguments: list[str]) -> int:
    """The command line; 0 when the output is written."""
    parser = argparse.ArgumentParser(prog="python -m papo.engines.prompt_lengths")
    parser.add_argument("model", type=Path, help="model folder")
    parser.add_argument("rows", help="Parquet of prompt_id, prompt, is_messages")
    parser.add_argument("output", help="Parquet of prompt_id, tokens")
    parser.add_argument("--format", default="{}", help="PromptFormat as JSON")
    parser.add_argument("--trust-remote-code", action="store_true")
    options = parser.parse_args(arguments)
    # Tokenizers need no torch, whose import is most of what this process would take.
    sys.modules.setdefault("torch", None)  # pyright: ignore[reportArgumentType]  # Python's own sign of no module
    from papo.engines.tokenizing import load_tokenizer, tokenize  # noqa: PLC0415  # seconds

    request = Tokenize(
        model=str(options.model),
        rows=options.rows,
        format=TypeAdapter(PromptFormat).validate_json(options.format),
        output=options.output,
    )
    try:
        found = tokenize(request, load_tokenizer(options.model, trust_remote_code=options.trust_remote_code))
    except PapoError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    found.select("prompt_id", pl.col("prompt_ids").list.len().alias("tokens")).write_parquet(options.output)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
