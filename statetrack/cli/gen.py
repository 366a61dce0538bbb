"""Write words of tasks and their labels as datasets that other programs read."""

from __future__ import annotations

import signal
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import typer
from rich.text import Text

from statetrack import data, report, sources, spec
from statetrack.cli import options
from statetrack.cli._terminal import (
    ending_signals,
    hearing,
    note,
    print_json,
    progress_bar,
    require_writable,
    write_file,
)
from statetrack.errors import (
    DatasetError,
    SettingsError,
    StatetrackError,
    StatetrackWarning,
    nearest,
    setting,
)
from statetrack.settings import Settings, option
from statetrack.text import GREATEST_SEED, command_line, visible

MACHINE_NAMES = ", ".join(sources.MACHINE_FORMATS)

PLACE = 1
"""Its place among the commands that `statetrack --help` lists."""


STARTER_SET = ("parity", "modular-addition", "s3", "random-fsm")
"""Written where no task is named: two abelian groups, a non-abelian group, and no group."""

MOST_WORDS_HELD, MOST_SYMBOLS_HELD = 2**20, 2**25
"""The largest split that is drawn in memory, with its padding; larger ones go over the disk."""

SAID_FIRST = 100_000_000
"""From how many bytes on the size is said before anything is drawn."""

MOST_WORDS = 10**15
"""The most words that can be asked for: whether the disk holds them is another question."""


class GenSettings(Settings):
    """The words of a dataset, apart from its task and its test lengths."""

    length: str = option("task", "Training lengths, as 2-10 or 500; `task`: the task's own.")
    samples: int = option(10_000, "Training words.", min=1, max=MOST_WORDS)
    validation_samples: int = option(
        1_000,
        "Validation words, of the training lengths but never among those.",
        min=0,
        max=MOST_WORDS,
    )
    test_samples: int = option(1_000, "Words at every test length.", min=0, max=MOST_WORDS)
    supervision: Literal["task", "every", "last"] = option(
        "task", "A label after every symbol, or after the last only; `task`: the task's own."
    )
    words: str = option(
        "task", "How words are drawn: task, uniform, group, group:NAME or weighted:FILE."
    )
    format: Literal["parquet", "jsonl", "npz", "csv", "lm-eval"] = option(
        "parquet", "The format of the files; `lm-eval`: tasks for lm-evaluation-harness."
    )
    text: Literal["tokens", "repl"] = option(
        "tokens",
        "With `lm-eval`, words as the names of symbols, or as a session of a Python interpreter.",
    )
    prompt: str = option(
        "{word} =>", "With `tokens`, what a model reads; {word} stands for the symbols' names."
    )
    reveal: float = option(
        0.0, "With `repl`, the share of states that are printed on the way.", min=0, max=1
    )
    seed: int = option(0, "The seed that all words come from.", min=0, max=GREATEST_SEED)


def build(argv: list[str]) -> Callable[..., None]:
    """The command `statetrack gen`; with a format of machines, its options are others."""
    formats = get_args(GenSettings.model_fields["format"].annotation)
    if options.peek(argv, "--format") not in (None, *formats):
        if options.peek(argv, "--format") in sources.MACHINE_FORMATS:
            return gen_machines
    return options.with_settings(gen, options.parameters(GenSettings, "Dataset"))


def gen(
    tasks: Annotated[
        list[str] | None,
        typer.Argument(metavar="TASK", help="Tasks; none: a small set to start with."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="The dataset's folder, or for several tasks the folder around theirs; "
            "by default data/TASK.",
        ),
    ] = None,
    test_length: options.TestLengths = None,
    force: options.Force = False,
    as_json: options.PrintJson = False,
    **given: Any,
) -> None:
    """Write words of tasks and their labels as datasets, or their machines into files.

    Every dataset is a folder with the splits train, validation and test_len500 (one for each
    test length), of which no two share a word, and a README that describes it. A folder that is
    not empty is never overwritten; --force replaces one that is a dataset and nothing else.

    With a format of machines (MACHINE_NAMES), no words are drawn: the
    smallest machine of every task is written into a file, which is a task again.

    Examples:
        statetrack gen parity --length 2-10 --test-length 500 --format jsonl
        statetrack gen s3 s5 --out data
        statetrack gen parity --format dot --out parity.dot

    """
    settings = options.collect(GenSettings, given)
    loaded = [spec.load_task(name).with_words(settings.words) for name in tasks or STARTER_SET]
    text = _text(settings)
    folders = _folders(loaded, out, force=force)
    lengths = sources.parse_lengths(test_length) if test_length else None
    requests = [_request(task, settings, lengths) for task in loaded]
    _check_room(loaded, requests, folders, settings, text)
    steps = list(zip(loaded, requests, folders, strict=True))
    cards = []
    of_one: dict[str, Any] = {"disable": True} if len(steps) == 1 else {}
    # other signals end the program as an interrupt does: no unfinished folder is left
    with hearing(ending_signals(), signal.default_int_handler):
        for task, request, folder in progress_bar(steps, desc="writing", leave=False, **of_one):
            cards.append(_write(folder, task, request, settings, text, force=force))
    if as_json:
        print_json({"datasets": [_as_json(*each) for each in zip(folders, cards, strict=True)]})
        return
    rows = [row for each in zip(cards, folders, strict=True) for row in _split_rows(*each)]
    headings = ("task", "split", "words", "length", "size")
    columns = report.plain_columns(*headings, right=headings[2:])
    to = report.console()
    to.print(report.Table(columns, rows, more="card.json has them"))
    for folder in folders:
        to.print(Text.assemble("written to ", (str(folder), "bold")), soft_wrap=True)
    to.print(Text(f"what is in it and how to read it: {folders[0] / 'README.md'}"), soft_wrap=True)


gen.__doc__ = (gen.__doc__ or "").replace("MACHINE_NAMES", MACHINE_NAMES)


def gen_machines(
    context: typer.Context,
    tasks: Annotated[
        list[str] | None, typer.Argument(metavar="TASK", help="Tasks whose machines are written.")
    ] = None,
    format: Annotated[str, typer.Option(help=f"The format: {MACHINE_NAMES}.")] = "dot",
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The file, or for several tasks the folder of theirs; by default data/TASK.dot, "
            "by its format.",
        ),
    ] = None,
    force: options.Force = False,
    as_json: options.PrintJson = False,
) -> None:
    """Write the smallest machines of tasks into files of other programs.

    Every file is a task again: its name is taken wherever a task's is. The same words have the
    same labels. A file that is there is never overwritten; --force replaces a file of the format.

    Examples:
        statetrack gen parity --format dot --out parity.dot

    """
    names = [*(tasks or ()), *context.args]
    written = options.written("format", format)
    unknown = [name for name in names if name.startswith("-")]
    if unknown:
        raise SettingsError(
            f"{unknown[0].partition('=')[0]}: {written} writes a "
            "machine, which has no words: only --out goes with it"
        )
    if not names:
        raise SettingsError(f"{written}: name a task, or several")
    loaded = [spec.load_task(name) for name in names]
    folder = None
    if out is not None and len(loaded) == 1:
        paths = [out]
        machine_format(out, format)
    else:
        folder = out or Path("data")
        if sources.format_of(folder.name):
            raise SettingsError(f"--out {out}: is one file: name one task, or a folder for several")
        paths = [folder / _file_name(task, format) for task in loaded]
    for path in paths:
        if paths.count(path) > 1:
            raise DatasetError(f"{path}: two of the tasks would be written there: name each once")
        if path.exists() and force:
            _require_machine(path)
        elif path.exists():
            raise DatasetError(
                f"{path}: already there, and nothing is written over: choose another --out, "
                "remove what is there first, or replace a machine by --force"
            )
    texts = [machine_text(task, format) for task in loaded]
    if folder is not None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise SettingsError(
                f"{folder}: cannot be made: {problem.strerror}: choose another folder by --out"
            ) from None
    for path, text in zip(paths, texts, strict=True):
        require_writable(path, "--out")
        write_file(path, text, "--out")
        if not as_json:
            typer.echo(f"written to {visible(str(path))}")
    if as_json:
        print_json({"machines": [_machine_json(*each) for each in zip(loaded, paths, strict=True)]})


def _as_json(folder: Path, card: dict[str, Any]) -> dict[str, Any]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    written = [
        {"name": path.relative_to(folder).as_posix(), "bytes": path.stat().st_size}
        for path in files
    ]
    return {"folder": str(folder), "files": written, "card": card}


def _folders(tasks: Sequence[spec.Task], out: Path | None, *, force: bool) -> list[Path]:
    """The folder of each task's dataset; raises, before anything is drawn, where one is in use.

    With `force`, datasets may be there.
    """
    if out is not None and len(tasks) == 1:
        folders = [out]
    else:
        folders = [(out or Path("data")) / _folder_name(task) for task in tasks]
    for folder in folders:
        if folders.count(folder) > 1:
            raise DatasetError(f"{folder}: two of the tasks would be written there: name each once")
    taken = [
        str(path) for path in folders if path.is_file() or (path.is_dir() and any(path.iterdir()))
    ]
    if taken and not force:
        raise DatasetError(
            f"{', '.join(taken)}: already there, and nothing is written over: "
            "choose another --out, remove what is there first, or replace a dataset by --force"
        )
    for name in taken:
        data.require_replaceable(Path(name))
    return folders


def _folder_name(task: spec.Task) -> str:
    """The name of a task's folder; of a task file, its stem; with the words, if not its own."""
    name = spec.folder_name(Path(task.name).stem if spec.is_path(task.name) else task.name)
    if task.words != spec.OWN:
        name += f"-{spec.folder_name(task.words)}"
    if not name:
        raise DatasetError(
            f"task '{task.name}': no folder can be named after it: give --out, and this task alone"
        )
    return name


def _text(settings: GenSettings) -> data.TextRequest:
    """How words are written; raises where that is asked for of a format that has no text."""
    if settings.format != "lm-eval":
        for name in ("text", "prompt", "reveal"):
            value = getattr(settings, name)
            if value != GenSettings.model_fields[name].default:
                raise SettingsError(
                    f"{setting(name, value)} is for {setting('format', 'lm-eval')}: "
                    "the other formats hold numbers"
                )
    elif settings.test_samples == 0:
        raise SettingsError(
            f"{setting('format', 'lm-eval')} asks for test words: give "
            f"{setting('test_samples')} of 1 or more"
        )
    return data.TextRequest(settings.text, settings.prompt, settings.reveal)


def _request(
    task: spec.Task, settings: GenSettings, test_lengths: list[int] | None
) -> data.Request:
    supervision = settings.supervision
    if supervision == "task" and settings.format == "lm-eval":
        supervision = "last"  # all that the harness asks for
    words = spec.WordSpec.of(task, train_length=settings.length, supervision=supervision)
    return data.Request(
        words.lengths,
        settings.samples,
        settings.validation_samples,
        tuple(test_lengths or task.spec.test_lengths),
        settings.test_samples,
        words.supervision,
        settings.seed,
    )


def _check_room(
    tasks: Sequence[spec.Task],
    requests: Sequence[data.Request],
    folders: Sequence[Path],
    settings: GenSettings,
    text: data.TextRequest,
) -> None:
    """Say how large the datasets will be where that is much; raises where the disk is too full."""
    sizes = [
        data.estimate_size(task.source, request, settings.format, text)
        for task, request in zip(tasks, requests, strict=True)
    ]
    total = sum(sizes[1:], sizes[0])
    total.check_room(folders[0])
    if total.written >= SAID_FIRST:
        shown = f"{total.num_words:,} words, {total.num_symbols:,} symbols: "
        shown += f"about {data.in_bytes(total.written)} on the disk"
        if any(map(_is_large, requests)):
            shown += f", and {data.in_bytes(total.beside)} more until they are written"
        note(shown)


def _is_large(request: data.Request) -> bool:
    """Whether the words are drawn onto the disk: it is slower, but takes no more memory."""
    return any(
        number > MOST_WORDS_HELD or number * lengths.longest > MOST_SYMBOLS_HELD
        for number, lengths in request.sizes
    )


def _write(
    folder: Path,
    task: spec.Task,
    request: data.Request,
    settings: GenSettings,
    text: data.TextRequest,
    *,
    force: bool,
) -> dict[str, Any]:
    """Draw one dataset and write it; its card."""
    command = _command(task, settings, request)
    if _is_large(request):
        with _Bars() as bars:
            return data.write_large_dataset(
                folder,
                task,
                request,
                format=settings.format,
                command=command,
                text=text,
                progress=bars.show,
                force=force,
            )
    splits = data.draw_splits(
        task.source,
        request.lengths,
        request.num_train,
        request.num_validation,
        request.test_lengths,
        request.num_test,
        request.supervision,
        request.seed,
    )
    how: dict[str, Any] = {"format": settings.format, "command": command, "text": text}
    return data.write_dataset(folder, task, splits, **how, force=force)


class _Bars:
    """A bar for each stage of drawing and writing one dataset, on a terminal."""

    def __init__(self) -> None:
        self._stage, self._bar = "", progress_bar(disable=True)

    def __enter__(self) -> _Bars:
        return self

    def __exit__(self, *of: object) -> None:
        self._bar.close()

    def show(self, stage: str, done: int, total: int) -> None:
        """Show how far a stage is."""
        if stage != self._stage:
            self._bar.close()
            self._stage = stage
            self._bar = progress_bar(
                total=total, desc=stage, unit=" words", unit_scale=True, leave=False
            )
        self._bar.update(min(done, total) - self._bar.n)


def _command(task: spec.Task, settings: GenSettings, request: data.Request) -> str:
    """The command line that writes this dataset again, with nothing left to defaults."""
    resolved = settings.model_dump() | {
        "words": task.words,
        "length": str(request.lengths),
        "supervision": request.supervision,
    }
    without = ["text", "prompt", "reveal"]  # what the words of this dataset do not depend on
    if settings.format == "lm-eval":
        without = ["reveal"] if settings.text == "tokens" else ["prompt"]
    for name in without:
        del resolved[name]
    words = [word for name, value in resolved.items() for word in (options.flag(name), str(value))]
    tests = sorted(set(request.test_lengths)) if request.num_test else []
    words += [word for length in tests for word in ("--test-length", str(length))]
    return command_line(["statetrack", "gen", task.name, *words])


def _split_rows(card: dict[str, Any], folder: Path) -> Iterator[report.Line]:
    for index, (split, facts) in enumerate(card["splits"].items()):
        shortest, longest = facts["shortest"], facts["longest"]
        length = str(longest) if shortest == longest else f"{shortest}-{longest}"
        size = data.in_bytes(_bytes_of(split, folder / "data"))
        cells = ("" if index else card["task"], split, facts["words"], length, size)
        yield report.Line(cells, ends=index == len(card["splits"]) - 1)


def _bytes_of(split: str, folder: Path) -> int:
    """The size of a split's files: `split.*`, `split-*`, or what is in the folder `split`."""
    files = [*folder.glob(f"{split}.*"), *folder.glob(f"{split}-*"), *folder.glob(f"{split}/*")]
    return sum(path.stat().st_size for path in files)


def machine_format(out: Path, name: str | None) -> str:
    """The format of a file, by its name or as it is asked for; the name must end in its way.

    Raises `SettingsError` for a format that is not known, and for a name that ends in another way:
    the file could not be read as a task.
    """
    if name is not None and name not in sources.MACHINE_FORMATS:
        known = ", ".join(sources.MACHINE_FORMATS)
        raise SettingsError(
            f"--format {name}: there are {known}.{nearest(name, sources.MACHINE_FORMATS)}"
        )
    found = sources.format_of(out.name)
    if name is None:
        if found is None:
            every = ", ".join(form.endings[0] for form in sources.MACHINE_FORMATS.values())
            raise SettingsError(
                f"--out: {out}: the file's name must end in .yaml or in one of {every}"
            )
        return found
    if found != name:
        endings = " or ".join(sources.MACHINE_FORMATS[name].endings)
        raise SettingsError(f"--out: {out}: the name of a file of {name} must end in {endings}")
    return name


def machine_text(task: spec.Task, form: str) -> str:
    """The text of a task's machine; warns of what the task says and the file does not."""
    for sentence in sources.what_is_left_out(task.automaton):
        warnings.warn(f"{task.name}: left out is {sentence}", StatetrackWarning, stacklevel=2)
    return sources.write_machine(task.automaton, form)


def _machine_json(task: spec.Task, path: Path) -> dict[str, Any]:
    machine = spec.load_task(str(path)).automaton
    sizes = {"states": machine.num_states, "symbols": machine.num_symbols}
    return {"task": task.name, "file": str(path), "bytes": path.stat().st_size} | sizes


def _require_machine(path: Path) -> None:
    """Raise `DatasetError` for a file that is no machine: it is not replaced."""
    try:
        spec.load_task(str(path))
    except StatetrackError as problem:
        raise DatasetError(
            f"{path}: is no machine file, and --force replaces nothing else: "
            f"{' '.join(str(problem).split())}"
        ) from None


def _file_name(task: spec.Task, form: str) -> str:
    """The name of a task's file; of a task that comes from a file, its stem."""
    path = Path(task.name)
    name = spec.folder_name(path.stem if spec.is_path(task.name) else task.name)
    if not name:
        raise DatasetError(f"task '{task.name}': no file can be named after it: give --out")
    return name + sources.MACHINE_FORMATS[form].endings[0]
