"""What needs no training: pages of help, the library's names, lists, and the algebra of tasks."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
from pathlib import Path

import statetrack as st

from .recording import Recorder, call
from .trained import TrainedRuns

MACHINES = Path(__file__).parent / "machines"

SMALL_TASKS = (
    *("parity", "s3", "s4", "a4", "z60", "quaternion", "heisenberg", "cyclic:n=6"),
    *("dihedral:n=5", "modular-addition:m=7", "word-problem", "s3-two-tokens", "point"),
    *("flip-flop-cascade", "flip-flop", "gated-parity", "register", "ends-with-ab", "adder"),
    *("permutation-reset", "random-fsm", "random-fsm:states=7,symbols=2,seed=3", "gridworld"),
    *("random-permutations", "s3-cascade", "s4-fused-swaps", "a4xz5", "dyck-1-depth-3"),
    *("tomita-3", "turnstile", "dyck-1", "anbn", "modular-arithmetic-with-brackets"),
    *("regex:(a|b)*abb", "regex:(ab|ba)*"),
)
COMPLETED = ("pre", "train --mod", "train --model bilinear-", "show s3", "list ", "eval --w")


def record_help(recorder: Recorder, _: TrainedRuns) -> None:
    """The help of the program, of every command, and of `train` with two models."""
    recorder.command()
    recorder.commands("--help\n-h\n--version\nhelp train\nhelp nothing\n--show-completion bash")
    for command in _commands():
        recorder.command(command, "--help")
    for model in ("deltanet", "transformer"):
        recorder.command("train", "--model", model, "--help")
    recorder.command("sweep", "--executor", "slurm", "--help")
    recorder.command("train", "--help", name="train --help wide", environment={"COLUMNS": "140"})
    recorder.command("--help", name="--help narrow", environment={"COLUMNS": "50"})
    for words in COMPLETED:
        typed = f"statetrack {words}"
        asked = {
            "_STATETRACK_COMPLETE": "complete_bash",
            "COMP_WORDS": typed,
            "COMP_CWORD": str(len(typed.split(" ")) - 1),
        }
        recorder.command(name=f"completion of {words}", environment=asked)


def _commands() -> list[str]:
    """The names of all commands, as the help of the program lists them."""
    listed = call(["--help"]).output.split("\nCommands\n")[1].split("\n\n")[0]
    return re.findall(r"^  ([a-z][a-z-]*) ", listed, re.MULTILINE)


def record_api(recorder: Recorder, _: TrainedRuns) -> None:
    """Every public name: what it is, its signature, its first line, and its public members."""
    recorder.text("names", "\n".join([*st.__all__, ""]))
    for name in st.__all__:
        recorder.text(f"name {name}", _described(name, getattr(st, name)))
    for name in ("MODELS", "KINDS", "TASKS", "LOSSES", "OPTIMISERS"):
        recorder.text(f"registry {name}", "\n".join([*getattr(st, name), ""]))


def _described(name: str, thing: object) -> str:
    if not callable(thing):
        return f"{name}: {type(thing).__name__}\n"
    lines = [f"{name}{_signature(thing)}", f"    {_first_line(thing)}"]
    if isinstance(thing, type):
        if dataclasses.is_dataclass(thing):
            lines += [f"field {each.name}: {each.type}" for each in dataclasses.fields(thing)]
        for member in sorted(dir(thing)):
            if not member.startswith("_") and not hasattr(object, member):
                lines += _member(thing, member)
    return re.sub(r"\bstatetrack\.(?:\w+\.)+", "", "\n".join([*lines, ""]))


def _member(owner: type, name: str) -> list[str]:
    home = next((each for each in owner.__mro__ if name in vars(each)), owner)
    if not home.__module__.startswith("statetrack"):
        return []
    held = vars(home)[name]
    if isinstance(held, property):
        return [f"property {name}", f"    {_first_line(held)}"]
    if callable(getattr(owner, name)):
        kind = type(held).__name__ if isinstance(held, classmethod | staticmethod) else "method"
        reached = getattr(owner, name)
        return [f"{kind} {name}{_signature(reached)}", f"    {_first_line(reached)}"]
    return [f"{type(held).__name__} {name}"]


def _signature(thing: object) -> str:
    try:
        return str(inspect.signature(thing))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return "(...)"


def _first_line(thing: object) -> str:
    return (inspect.getdoc(thing) or "").partition("\n")[0]


def record_lists(recorder: Recorder, _: TrainedRuns) -> None:
    """Lists as text and JSON, filters, pages about every name, citations, and `info`."""
    for what in ("", "models", "tasks", "kinds", "protocols", "suites", "runs", "commands"):
        recorder.command("list", *filter(None, [what]))
        recorder.command("list", *filter(None, [what]), "--json")
        wide = {"COLUMNS": "200"}
        recorder.command("list", *filter(None, [what]), name=f"list {what} wide", environment=wide)
    recorder.commands(
        """
        list tasks --filter "states<=6"
        list tasks --filter "group=S3" --json
        list tasks --filter "group=S3 states<=6" --filter reference!=own
        list models --filter linear
        list models --filter linear --json
        list models --filter "no such words"
        list suites --filter bilinear
        list
        cite
        cite --json
        cite s3
        """
    )
    for model in st.MODELS:
        recorder.commands(f"show {model}\nshow {model} --json\ncite {model}\ncite {model} --json")
    for task in st.TASKS:
        recorder.command("show", f"task:{task}")
        recorder.command("cite", task, "--json")
    for kind in st.KINDS:
        recorder.commands(f"show kind:{kind}\nshow kind:{kind} --json")
    for what, prefix in (("suites", "suite"), ("protocols", "protocol")):
        for row in json.loads(call(["list", what, "--json"]).output):
            name = f"{prefix}:{row['name']}"
            recorder.commands(f"show {name}\nshow {name} --json")
    _record_info(recorder)


def _record_info(recorder: Recorder) -> None:
    """Of `info` the names on the left alone: what stands behind them are facts of the machine."""
    recorder.command("info", change=lambda text: _found(r"^\S+(?: \S+)*(?=  )", text))
    recorder.command("info", "--json", change=lambda text: _found(r'^ *"[^"]+":', text))


def _found(pattern: str, text: str) -> str:
    return "".join(f"{each}\n" for each in re.findall(pattern, text, re.MULTILINE))


def record_algebra(recorder: Recorder, _: TrainedRuns) -> None:
    """What is known of tasks and machines before any training, and audits of two."""
    for task in SMALL_TASKS:
        recorder.commands(f"show '{task}' --json\npredict '{task}' --json\npredict '{task}'")
    for file in sorted(MACHINES.iterdir()):
        machine = Path(file.name)
        machine.write_bytes(file.read_bytes())
        recorder.commands(
            f"show {machine}\nshow {machine} --json\npredict {machine}\npredict {machine} --json"
        )
    recorder.commands(
        """
        predict
        predict s3 s5 parity flip-flop
        predict s3 s5 parity --json --models lstm,mamba
        predict s3 --models "deltanet --beta double,deltaproduct --householders 1,lstm --hidden 3"
        predict s5 --models "deltaproduct --householders 2" --json
        audit parity --samples 200 --train-samples 1000 --json
        audit ends-with-ab --samples 200 --train-samples 1000 --json
        audit ends-with-ab --samples 200 --train-samples 1000
        audit permutation-reset --samples 100 --train-samples 500 --words group --length 10-40:10
        audit office__coffee.dot --samples 100 --train-samples 500 --length 50
        audit dyck-1 --samples 100 --train-samples 500 --length 40 --supervision last
        """
    )
    for task in ("s3", "heisenberg", "random-fsm", "flip-flop-cascade", "street__lights.kiss2"):
        recorder.library(f"st.analyse {task}", lambda task=task: _facts(_analysed(task)))
    for task, model in (("s3", "lstm"), ("s5", "deltaproduct"), ("parity", "mamba"), ("a", "lstm")):
        recorder.library(
            f"st.predict {task} {model}",
            lambda task=task, model=model: _facts(st.predict(task, model)),
        )


def _analysed(task: str) -> st.Algebra:
    return st.analyse(st.load_task(task).source)


def _facts(thing: object) -> str:
    """The public attributes of a value that are numbers, truth values or texts."""
    told = {name: getattr(thing, name) for name in dir(thing) if not name.startswith("_")}
    plain = {name: value for name, value in told.items() if _is_plain(value)}
    return "\n".join(f"{name} = {value!r}" for name, value in sorted(plain.items()))


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, bool | int | float | str)
