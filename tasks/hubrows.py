"""Rows of a Hugging Face dataset, by the library `datasets`: a local folder where there is one, else the hub.

The library is imported where a run has such a source, never before. A folder that save_to_disk wrote is read as it is;
in any other folder the library finds data files by its own rules, and builds its table anew each time, so that an
edited file is never answered from a cache. From the hub it takes what it has in its cache when it is offline.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from papo.errors import DataError
from schemas.data import HuggingFaceSource
from schemas.filechecks import resolve
from tasks.rowfiles import Row, row_of

BATCH = 1000


def dataset_rows(source: HuggingFaceSource, base: Path, names: Sequence[str]) -> Iterator[Row]:
    """The source's rows with at least the columns `names` that there are. Labels are their numbers.

    Raises DataError where the dataset as a whole cannot be had.
    """
    dataset = _opened(source, base)
    columns: list[str] = dataset.column_names
    last = len(dataset) if source.take is None else min(len(dataset), source.skip + source.take)
    wanted = [name for name in dict.fromkeys(names) if name in columns]
    # As Arrow, so that nothing is decoded or converted on the way.
    table = dataset.select_columns(wanted).with_format("arrow")
    for first in range(min(source.skip, last), last, BATCH):
        batch = range(first, min(first + BATCH, last))
        # A table without columns has no rows either.
        values: list[dict[str, Any]] = table[batch.start : batch.stop].to_pylist() if wanted else [{} for _ in batch]
        for number, row in zip(batch, values, strict=True):
            yield row_of(number, row, columns)


def _opened(source: HuggingFaceSource, base: Path) -> Any:
    try:
        import datasets  # noqa: PLC0415
    except ImportError:
        raise DataError(
            f"{source.path} is a Hugging Face dataset, which needs the package datasets: install it with"
            " pip install -e '.[datasets]'."
        ) from None
    datasets.disable_progress_bars()
    path = resolve(source.path, base)
    try:
        found = _loaded(datasets, source, path)
    except Exception as error:  # the library raises dozens of classes, from its own to those of every file format
        where = f"{path} (a local folder)" if path.is_dir() else f"{source.path} (looked for on the hub)"
        raise DataError(f"The dataset {where} cannot be read: {_first_line(error)}\n{_way_out(path)}") from None
    if isinstance(found, dict):
        splits = cast("dict[str, Any]", found)
        if source.split not in splits:
            raise DataError(
                f"The dataset {source.path} has no split {source.split!r}: its splits are {', '.join(splits)}."
            )
        return splits[source.split]
    return found


def _loaded(datasets: Any, source: HuggingFaceSource, path: Path) -> Any:
    if (path / "dataset_dict.json").is_file() or (path / "state.json").is_file():
        return datasets.load_from_disk(str(path))
    if path.is_dir():
        return datasets.load_dataset(
            str(path), source.subset, split=source.split, download_mode="force_redownload"
        )  # fmt: skip
    return datasets.load_dataset(source.path, source.subset, split=source.split, revision=source.revision)


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _way_out(path: Path) -> str:
    if path.is_dir():
        return "Check subset and split; a folder of another library is converted with datasets' save_to_disk."
    return (
        "Check the name, subset, split and revision. Without a network (or with HF_HUB_OFFLINE=1) only what is in the"
        " cache can be had: save it once where there is one (save_to_disk) and name that folder in path."
    )
