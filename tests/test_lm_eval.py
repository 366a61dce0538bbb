"""Folders for lm-evaluation-harness: what stands in them, and what the harness makes of them."""

import doctest
import json
import os
import shutil
import subprocess

import pytest
import yaml

from statetrack.cli import app
from statetrack.data import TextRequest, draw_splits, read_dataset, write_dataset
from statetrack.data.formats.lm_eval import harness_name
from statetrack.data.texts import AS_TOKENS, texts_of
from statetrack.errors import DatasetError, SettingsError
from statetrack.sources import LengthDistribution, arrangements_of, parse_lengths
from statetrack.spec import load_task


def gen(*words, code=0):
    assert app.run(["gen", *words, "--format", "lm-eval", "--validation-samples", "5"]) == code


def written(folder, task, text=AS_TOKENS, tests="8,11", lengths="2-6", num_train=20, seed=3):
    """A folder of 20 words at every test length."""
    task = load_task(task)
    splits = draw_splits(
        task.source, LengthDistribution.parse(lengths), num_train, 5, parse_lengths([tests]), 20,
        "last", seed,
    )  # fmt: skip
    write_dataset(folder, task, splits, format="lm-eval", text=text)
    return folder


def lines_of(folder, split):
    text = (folder / "data" / f"{split}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def yaml_of(path):
    class Loader(yaml.SafeLoader):
        pass

    Loader.add_constructor("!function", lambda loader, node: f"function {node.value}")
    return yaml.load(path.read_text(encoding="utf-8"), Loader)


def test_a_word_is_its_names_in_the_prompt_and_the_answer_its_last_label(tmp_path):
    folder = written(tmp_path / "s3", "s3", TextRequest(prompt="word: {word}\nstate:"))
    task = load_task("s3")
    for line in lines_of(folder, "test_len11"):
        names = task.format_word(line["input"])
        assert line["text"] == f"word: {names}\nstate:"
        assert line["answer"] == task.format_labels(line["input"]).split()[-1]
        assert task.source.labels[line["choice"]] == line["answer"]


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_a_prompt_of_several_lines_is_in_the_command_of_the_card(tmp_path, capsys):
    prompt, out = "It's \\:\t{word}\nA\u0308\u00a0\u200b:", str(tmp_path / "s3")
    gen("s3", "--samples", "5", "--test-length", "8", "--test-samples", "2", "--prompt", prompt,
        "--out", out)  # fmt: skip
    command = json.loads((tmp_path / "s3" / "card.json").read_text(encoding="utf-8"))["command"]
    assert command.isprintable()
    words = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {command}"],
        capture_output=True, check=True, env=os.environ | {"LC_ALL": "C.UTF-8"},
    ).stdout.decode().split("\0")  # fmt: skip
    assert words[words.index("--prompt") + 1] == prompt


def test_a_folder_is_read_again_as_the_words_that_were_written(tmp_path):
    for text in (TextRequest(), TextRequest("repl", reveal=0.5)):
        folder = written(tmp_path / text.form, "permutation-reset", text)
        task = load_task("permutation-reset")
        again = read_dataset(folder)
        assert again.card["format"] == "lm-eval"
        for name, batch in again.splits.items():
            assert [line["input"] for line in lines_of(folder, name)] == [
                word[:length].tolist()
                for word, length in zip(batch.symbols, batch.lengths, strict=True)
            ]
        labels, _ = task.source.read(again.splits["test_len11"].symbols)
        assert (labels == again.splits["test_len11"].labels).all()


def test_there_is_a_task_of_each_kind_for_every_length_and_a_group_of_each_kind(tmp_path):
    folder = written(tmp_path / "s3", "modular-addition:m=3")
    name = "statetrack_modular-addition-m-3"
    assert {path.stem for path in folder.glob("*.yaml")} == {
        f"{name}{length}{kind}" for length in ("", "_len8", "_len11") for kind in ("", "_generate")
    }
    group = yaml_of(folder / f"{name}.yaml")
    assert (group["group"], group["task"]) == (name, [f"{name}_len8", f"{name}_len11"])
    one = yaml_of(folder / f"{name}_len8.yaml")
    assert one["doc_to_choice"] == ["0", "1", "2"]  # text, also where it looks like a number
    assert f"--tasks {name} " in (folder / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("task", "name"),
    [
        ("s5", "statetrack_s5"),
        ("folder/my broker.dot", "statetrack_my-broker"),
        ("turnstile.yaml", "statetrack_turnstile"),
        ("product(parity,cyclic:n=3)", "statetrack_product-parity-cyclic-n-3"),
    ],
)
def test_a_group_is_called_by_its_task_in_letters_that_a_command_line_takes(task, name):
    assert harness_name(task) == name


def session_of(folder, line):
    """The definitions, one word and its answer."""
    one = yaml_of(next(folder.glob("*_len8.yaml")))
    return f"{one['dataset_kwargs']['definitions']}{line['text']}{line['answer']}\n"


@pytest.mark.parametrize(
    "task",
    ["s3", "symmetric:n=4,generators=swaps", "permutation-reset", "parity", "turnstile", "tomita-5",
     "cyclic:n=3", "flip-flop-dense", "s3-cascade", "gridworld"],
)  # fmt: skip
def test_python_prints_in_a_session_what_the_session_shows(tmp_path, task):
    folder = written(tmp_path / "repl", task, TextRequest("repl", reveal=0.4))
    shown = 0
    for line in lines_of(folder, "test_len11"):
        if line["text"]:
            test = doctest.DocTestParser().get_doctest(
                session_of(folder, line), {}, "word", None, None
            )
            shown += len([each for each in test.examples if each.want]) - 1
            assert doctest.DocTestRunner(verbose=False).run(test).failed == 0
    assert shown > 5


def test_permutations_are_assignments_to_variables_and_other_machines_a_dictionary():
    s3 = texts_of(load_task("s3").source, TextRequest("repl"))
    assert s3.definitions == ""
    symbols = [load_task("s3").source.symbols.index(name) for name in ("(1,2)", "e", "(1,2,3)")]
    labels = load_task("s3").source.read([symbols])[0][0].tolist()
    assert s3.text_of(symbols, labels, [True, False, False]).splitlines() == [
        ">>> a, b, c = 1, 2, 3",
        ">>> a, b = b, a",
        ">>> print(a, b, c)",
        "2 1 3",
        ">>> pass",
        ">>> a, b, c = b, c, a",
        ">>> print(a, b, c)",
    ]
    parity = texts_of(load_task("parity").source, TextRequest("repl"))
    assert parity.definitions.startswith(">>> step = {'0': {'0': '0', '1': '1'}")
    assert parity.text_of([1, 0], [1, 1], [False, False]).splitlines()[1] == (
        ">>> state = step[state]['1']"
    )


def test_names_that_look_like_permutations_are_none_where_symbols_do_something_else(tmp_path):
    machine = tmp_path / "odd.yaml"
    machine.write_text(
        "title: Odd\nversion: 1\nreference: own\nautomaton:\n  kind: transitions\n  start: e\n"
        "  states:\n    e: {x: '(1,2)', y: e}\n    '(1,2)': {x: '(1,2)', y: '(1,2)'}\n"
        "examples: {'x y': '(1,2) (1,2)', 'y x': 'e (1,2)'}\ntrain_length: [2, 4]\n"
        "test_lengths: [5]\nsupervision: every\n"
    )
    odd = load_task(str(machine)).automaton
    found = arrangements_of(odd)
    assert found is None or all(found.symbols)  # x sets both places outright, y leaves them
    assert arrangements_of(load_task("parity").automaton) is None
    assert arrangements_of(load_task("s5-swaps").automaton) is not None


def test_the_same_seed_reveals_the_same_states(tmp_path):
    text = TextRequest("repl", reveal=0.25)
    one, two, other = (
        lines_of(written(tmp_path / name, "s3", text, "40", seed=seed), "test_len40")
        for name, seed in (("one", 3), ("two", 3), ("other", 4))
    )
    assert one == two and one != other
    revealed = sum(line["text"].count("print") - 1 for line in one) / (20 * 39)
    assert 0.2 < revealed < 0.3
    everything = lines_of(
        written(tmp_path / "all", "s3", TextRequest("repl", reveal=1.0)), "test_len8"
    )
    assert all(line["text"].count("print") == 8 for line in everything)


def test_a_word_of_which_no_label_is_asked_for_has_no_answer_and_no_question(tmp_path):
    folder = written(tmp_path / "flip", "flip-flop", num_train=100)
    lines = lines_of(folder, "train")
    unasked = [line for line in lines if not any(line["scored"])]
    assert all(line["choice"] is None and line["text"] == "" for line in unasked)
    for line in lines:
        if line["choice"] is not None:  # flip-flop asks behind `r` only: the text ends there
            assert line["text"].removesuffix(" =>").split()[-1] == "r"


def test_what_cannot_be_written_is_refused_in_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingsError, match=r"prompt: must hold \{word\} once"):
        TextRequest(prompt="no place")
    for words, message in [
        (["s3", "--text", "repl", "--prompt", "{word}:"], "--prompt is for --text tokens"),
        (["s3", "--reveal", "0.5"], "--reveal 0.5 is for --text repl"),
        (["s3", "--test-samples", "0"], "asks for test words"),
        (["modular-arithmetic-with-brackets", "--text", "repl"], "have no automaton"),
        (["random-fsm:states=300,symbols=9", "--text", "repl"], "2,700 transitions are too many"),
    ]:
        gen(*words, code=1)
        assert message in " ".join(capsys.readouterr().err.split())
    assert app.run(["gen", "s3", "--format", "jsonl", "--text", "repl"]) == 1
    assert "--text repl is for --format lm-eval" in " ".join(capsys.readouterr().err.split())
    assert not list(tmp_path.iterdir())


def test_only_the_last_label_is_asked_for_unless_the_user_says_otherwise(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    gen("s3", "--test-length", "5", "--test-samples", "20", "--samples", "30", "--out", "s3")
    card = json.loads((tmp_path / "s3" / "card.json").read_text())
    assert card["supervision"] == "last"
    assert "--text tokens" in card["command"] and "--reveal" not in card["command"]


def test_a_line_longer_than_any_text_is_refused(tmp_path):
    folder = written(tmp_path / "s3", "s3")
    path = folder / "data" / "test_len8.jsonl"
    path.write_text(path.read_text().replace('"text":"', '"text":"' + "x" * 10**5, 1))
    with pytest.raises(DatasetError, match="line 1: longer than"):
        read_dataset(folder)


def test_a_model_may_write_as_many_tokens_as_an_answer_has_bytes(tmp_path):
    folder = written(tmp_path / "s3", "s3", TextRequest("repl"))
    one = yaml_of(folder / "statetrack_s3_len8_generate.yaml")
    assert one["generation_kwargs"]["max_gen_toks"] == len("1 2 3") + 2


# The harness itself


@pytest.fixture(scope="module")
def harness():
    """What the tests need of lm-evaluation-harness, where it is installed."""
    pytest.importorskip("lm_eval", reason="`pip install '.[lm-eval]'` installs it")
    import lm_eval
    from lm_eval.api.model import LM
    from lm_eval.tasks import TaskManager

    class Scripted(LM):
        """Answers every prompt with `answers(prompt)`."""

        def __init__(self, answers):
            super().__init__()
            self.answers, self.prompts = answers, []

        def loglikelihood(self, requests, disable_tqdm=False):
            found = []
            for prompt, continuation in (request.args for request in requests):
                self.prompts.append(prompt)
                right = continuation.strip() == self.answers(prompt)
                found.append((0.0 if right else -9.0, right))
            return found

        def loglikelihood_rolling(self, requests, disable_tqdm=False):
            raise NotImplementedError

        def generate_until(self, requests, disable_tqdm=False):
            return [f" {self.answers(request.args[0])}" for request in requests]

    def evaluate(folder, tasks, answers, **options):
        model = Scripted(answers)
        found = lm_eval.simple_evaluate(
            model=model,
            tasks=tasks,
            task_manager=TaskManager(include_path=str(folder), include_defaults=False),
            bootstrap_iters=0,
            log_samples=False,
            **options,
        )
        return found["results"], model.prompts

    return evaluate


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("task", ["s3", "flip-flop"])
@pytest.mark.parametrize("text", [TextRequest(), TextRequest("repl", reveal=0.3)])
def test_the_harness_gives_an_oracle_one_and_a_constant_answer_its_share(
    tmp_path, harness, task, text
):
    folder = written(tmp_path / "set", task, text)
    name = f"statetrack_{task}"
    answers = {
        line["text"]: line["answer"]
        for length in (8, 11)
        for line in lines_of(folder, f"test_len{length}")
    }
    kinds = [name, f"{name}_generate"]
    definitions = yaml_of(folder / f"{name}_len8.yaml")["dataset_kwargs"]["definitions"]
    found, prompts = harness(
        folder, kinds, lambda prompt: answers[prompt.removeprefix(definitions)], num_fewshot=0
    )
    assert all(prompt.startswith(definitions) for prompt in prompts)
    for length in (8, 11):
        right = found[f"{name}_len{length}"]
        assert right["acc,none"] == right["acc_norm,none"] == right["exact_match,none"] == 1.0
        assert found[f"{name}_len{length}_generate"]["exact_match,stripped"] == 1.0
    assert found[name]["acc,none"] == 1.0
    labels = read_dataset(folder).splits["test_len11"].last_labels().tolist()
    floor = max(set(labels), key=labels.count)
    constant = texts_of(load_task(task).source, text).choices[floor]
    found, _ = harness(folder, kinds, lambda prompt: constant, num_fewshot=0)
    share = labels.count(floor) / len(labels)
    assert found[f"{name}_len11"]["acc,none"] == share
    assert found[f"{name}_len11_generate"]["exact_match,stripped"] == share


@pytest.mark.filterwarnings("ignore")
def test_few_shot_examples_are_answered_training_words(tmp_path, harness):
    folder = written(tmp_path / "set", "s3", TextRequest("repl", reveal=0.3))
    known = {line["text"]: line["answer"] for line in lines_of(folder, "train")}
    _, prompts = harness(folder, ["statetrack_s3_len8"], lambda prompt: "1 2 3", num_fewshot=2)
    for prompt in prompts:
        *examples, word = prompt.split(">>> a, b, c = 1, 2, 3\n")[1:]
        assert len(examples) == 2
        for example in examples:
            asked, _, answer = example.rstrip("\n").rpartition("\n")
            assert known[f">>> a, b, c = 1, 2, 3\n{asked}\n"] == answer
        assert word.endswith(">>> print(a, b, c)\n")
