"""A folder of tasks for lm-evaluation-harness, with the words as text in JSON lines.

`lm_eval --include_path FOLDER --tasks NAME` reads it without a network (Gao et al.,
EleutherAI/lm-evaluation-harness; tested with version 0.4.13). For every test length there are two
tasks, and a group of each kind holds those of all lengths:

    NAME_len20            multiple choice: the likelihood of every label after the word
    NAME_len20_generate   generation up to the end of the line, compared with the label

Asked is the last label of a word only, as in the permutation benchmark proposed to the harness
(EleutherAI/lm-evaluation-harness pull request 3157). The measure of that benchmark, whether the
greedy continuation is the label, is `exact_match` of the first kind. Few-shot examples come from
`train`. The lines in `data` hold what those of the format `jsonl` do, and `text`, `choice` and
`answer` besides.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import yaml

from statetrack.data.formats import jsonl
from statetrack.data.formats.filling import Declared, Extent, Format, Writing
from statetrack.data.parts import Part
from statetrack.data.splits import TEST
from statetrack.data.texts import Reveals, Texts, last_asked, texts_of
from statetrack.sources import Batch
from statetrack.spec import folder_name, is_path

HARNESS_VERSION: Final = "0.4.13"
"""The version of lm-evaluation-harness that these folders are tested with."""

MOST_PROMPT_BYTES: Final = 4 * 10_000
BYTES_PER_SYMBOL: Final = 4_096
"""A line of text has no more for each symbol: an assignment to 26 variables, and a reveal."""

READER: Final = '''"""The splits of this folder's data, for lm-evaluation-harness."""

import json
from pathlib import Path

import datasets


def splits(test, definitions="", **_):
    """The words of `train` and of one test split of which a label is asked for."""

    def words(name):
        lines = (Path(__file__).parent / "data" / f"{name}.jsonl").read_text("utf-8").splitlines()
        read = (json.loads(line) for line in lines)
        kept = [
            {key: word[key] for key in ("text", "choice", "answer", "length")}
            | {"definitions": definitions}
            for word in read
            if word["choice"] is not None
        ]
        return datasets.Dataset.from_list(kept)

    return datasets.DatasetDict({"train": words("train"), "test": words(test)})
'''
"""What the harness calls to read the data: so a folder can be moved."""


def write(folder: Path, split: str, part: Part, writing: Writing) -> None:
    """Write `<split>.jsonl`."""
    source, request = writing.task.source, writing.text
    texts = texts_of(source, request)
    reveals = Reveals(request.reveal, writing.seed, _number_of(split))
    with (folder / f"{split}.jsonl").open("w", encoding="utf-8", newline="\n") as file:
        for batch in part.pieces():
            asked = np.zeros_like(batch.scored)
            if request.reveal:
                _, asked = source.read(batch.symbols)
            for line in _lines(batch, reveals.next(asked), texts):
                file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")


def finish(folder: Path, splits: Sequence[str], writing: Writing) -> None:
    """Write the tasks beside the folder `data`, and what reads it."""
    tests = [split for split in splits if split.startswith(TEST)]
    (folder / "splits.py").write_text(READER, encoding="utf-8")
    for name, content in _tasks(tests, writing).items():
        text = yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")


def _tasks(tests: Sequence[str], writing: Writing) -> dict[str, dict[str, Any]]:
    """The content of every YAML file, by its name."""
    task = writing.task
    texts, name = texts_of(task.source, writing.text), harness_name(task.name)
    written: dict[str, dict[str, Any]] = {}
    for ending, own, metrics in (
        ("", _choice(texts), ("acc", "acc_norm", "exact_match")),
        ("_generate", _generation(texts), ("exact_match",)),
    ):
        members = []
        for split in tests:
            length = int(split.removeprefix(TEST))
            member = f"{name}_len{length}{ending}"
            members.append(member)
            written[member] = {
                "task": member,
                **_shared(texts, split, task.spec.version),
                **own,
                "metric_list": [
                    {"metric": each, "aggregation": "mean", "higher_is_better": True}
                    for each in metrics
                ],
            }
        written[name + ending] = {
            "group": name + ending,
            "task": members,
            "aggregate_metric_list": [
                {"metric": each, "aggregation": "mean", "weight_by_size": False} for each in metrics
            ],
            "metadata": {"version": task.spec.version},
        }
    return written


def read(folder: Path, split: str, declared: Declared) -> Batch:
    """Read the words and labels of a split; the text is not held against them.

    Raises `DatasetError`, naming the line, where a line is no such word or not as declared.
    """
    return jsonl.read(folder, split, declared, MOST_PROMPT_BYTES, BYTES_PER_SYMBOL)


def harness_name(task: str) -> str:
    """The name of a task's group: letters, digits, `_`, `.` and `-`."""
    stem = folder_name(Path(task).stem if is_path(task) else task)
    return f"statetrack_{re.sub(r'[^A-Za-z0-9_.-]+', '-', stem).strip('-') or 'task'}"


def usage(card: Mapping[str, Any], folder: str) -> str:
    """How the folder of a card is used, as Markdown."""
    name = harness_name(card["task"])
    tests = [split.removeprefix(TEST) for split in card["splits"] if split.startswith(TEST)]
    floors = ""
    if card["supervision"] == "last":
        floors = (
            " A model that always gives the same answer scores at most what the table above says."
        )
    return (
        f"With lm-evaluation-harness (tested with version {HARNESS_VERSION}; it executes "
        "`splits.py` of this folder, which reads `data`):\n\n"
        "```sh\nlm_eval run --model hf --model_args pretrained=MODEL "
        f"--include_path {shlex.quote(folder)} --tasks {name} --num_fewshot 5\n```\n\n"
        f"`{name}` compares the likelihood of every label after the word: `acc`, `acc_norm` "
        "(divided by the label's length) and `exact_match` (whether the greedy continuation is "
        f"the label). `{name}_generate` lets the model write up to the end of the line "
        "(`exact_match`). Each is a group with one task per length, such as "
        f"`{name}_len{tests[0] if tests else 0}`.{floors}\n"
    )


def _number_of(split: str) -> int:
    """A number of its own for every split."""
    if split.startswith(TEST):
        return 2 + int(split.removeprefix(TEST))
    return ("train", "validation").index(split)


def _lines(batch: Batch, shown: Any, texts: Texts) -> list[dict[str, Any]]:
    """What stands on the line of each word of a batch `[n, T]`."""
    lines = []
    for line, place, labels, revealed in zip(
        jsonl.lines(batch),
        last_asked(batch.scored),
        batch.labels.tolist(),
        shown.tolist(),
        strict=True,
    ):
        end = 0 if place is None else place + 1
        symbols = line["input"][:end]
        text = "" if place is None else texts.text_of(symbols, labels[:end], revealed[:end])
        choice = None if place is None else labels[place]
        answer = None if choice is None else texts.choices[choice]
        lines.append(line | {"text": text, "choice": choice, "answer": answer})
    return lines


def _shared(texts: Texts, split: str, version: int) -> dict[str, Any]:
    """What both kinds of task say."""
    definitions = texts.definitions
    return {
        "custom_dataset": _Function("splits.splits"),
        "dataset_kwargs": {"test": split, "definitions": definitions},
        "training_split": "train",
        "fewshot_split": "train",
        "test_split": "test",
        "description": "definitions",
        "doc_to_text": "text",
        "target_delimiter": texts.delimiter,
        "fewshot_delimiter": texts.separator,
        "metadata": {"version": version},
    }


def _choice(texts: Texts) -> dict[str, Any]:
    return {
        "output_type": "multiple_choice",
        "doc_to_choice": list(texts.choices),
        "doc_to_target": "choice",
    }


def _generation(texts: Texts) -> dict[str, Any]:
    """A token is a byte or more, so a model can write every answer, and two spaces."""
    most = 2 + max(len(choice.encode()) for choice in texts.choices)
    stripped = [{"function": "remove_whitespace"}, {"function": "take_first"}]
    return {
        "output_type": "generate_until",
        "doc_to_target": "answer",
        "generation_kwargs": {"until": ["\n"], "do_sample": False, "max_gen_toks": most},
        "filter_list": [{"name": "stripped", "filter": stripped}],
    }


class _Function(str):
    """A function that the harness is to import: `!function module.name`."""


class _Dumper(yaml.SafeDumper):
    """Writes `_Function` with its tag, and text of several lines between double quotes."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    style = '"' if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)
_Dumper.add_representer(
    _Function, lambda dumper, text: dumper.represent_scalar("!function", str(text))
)


def _size(extent: Extent) -> float:
    request = extent.request
    in_text = texts_of(extent.source, extent.text).bytes_per_symbol
    beside = (60 + len(extent.text.prompt)) * request.num_words + in_text * request.num_symbols
    return jsonl.size(extent) + beside


FORMAT: Final = Format(
    write,
    read,
    _size,
    f"{jsonl.COLUMNS}; `text` (the word as a model reads it, up to the last label that is asked "
    "for), `choice` (that label's number) and `answer` (what the model is to write), null where no "
    "label of the word is asked for.\n",
    "{split}.jsonl",
    usage=usage,
    finish=finish,
    beside=lambda name: name in ("splits.py", "__pycache__") or name.endswith(".yaml"),
)
