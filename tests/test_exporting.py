"""Exports: the authors' names and numbers, golden words, and what `check_kernel.py` finds.

That the authors' layers follow their machines is recorded by `tests.references.record.exports`, for
layers that need a GPU or Triton's interpreter; those of transformers are run here.
"""

from __future__ import annotations

import ast
import json
import runpy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

import statetrack as st
from statetrack.cli.app import run as command
from statetrack.exporting import LAYOUTS, AuthorsLayer, Exported, export
from statetrack.exporting.kernel import KERNELS, other_gauge
from statetrack.models import MODELS, BlockModel
from statetrack.settings import build as build_settings
from tests.kernel_faults import kernels
from tests.kernel_faults.__main__ import FAULTS, RECORDED, RIGHT, table
from tests.kernel_faults.running import check, make_folder
from tests.references.reading import run_by_steps
from tests.references.record.exports import CASES
from tests.references.record.exports import RECORDED as RECORDED_EXPORTS
from tests.references.record.exports import table as exports_table
from tests.references.recorded import Recorded, recorded, stated_difference
from tests.setups import parity_run

ROOT = Path(__file__).parents[1]
STANDALONE = ROOT / "statetrack" / "exporting" / "standalone"
LENGTH = 150


def make(name: str, **options: Any) -> BlockModel[Any]:
    kind = MODELS[name]
    settings = build_settings(kind.settings_class, options, name)
    model = kind(settings, num_symbols=2, num_labels=2)
    assert isinstance(model, BlockModel)
    return model.double()


# --- names and numbers of the authors ---

SMALL = {"width": 16, "heads": 2, "key_dim": 8, "value_dim": 8}
RECORDINGS: list[tuple[str, str, str, dict[str, Any]]] = [
    ("fla", "deltanet", "fla-org", SMALL | {"beta": "double"}),
    ("fla", "gated-deltanet", "fla-org", SMALL | {"beta": "double", "value_dim": 16}),
    ("fla", "deltaproduct", "fla-org", SMALL | {"householders": 2}),
    ("fla", "gated-deltaproduct", "fla-org", SMALL | {"householders": 3}),
    ("fla", "kda", "fla-org", SMALL | {"beta": "double"}),
    ("fla", "gla", "fla-org", {"width": 16, "heads": 2, "gate_rank": 3, "conv": 4}),
    ("fla", "rwkv6", "fla-org", {"width": 16, "heads": 2, "shift_rank": 3, "decay_rank": 4}),
    ("fla", "rwkv7", "fla-org", {"width": 16, "heads": 2, "rank": 4}),
    ("mamba", "mamba", "state-spaces", {"width": 6, "state": 3}),
    ("mamba", "mamba2", "state-spaces", {"width": 6, "state": 5, "heads": 3}),
]


def read_back(layer: AuthorsLayer, mixer: Any, theirs: dict[str, Tensor]) -> None:
    """Give a mixer the weights of which the export is the authors' state dict.

    An export moves numbers, and may subtract them from 1 or 1 from them: where each goes is found
    by exporting zeros, and then a different number at every place.
    """
    with torch.no_grad():
        for weight in mixer.parameters():
            weight.zero_()
        offsets = layer.weights(mixer)
        places: list[tuple[Tensor, int]] = []
        for weight in mixer.parameters():
            first = len(places) + 1
            flat = weight.view(-1)
            flat.copy_(torch.arange(first, first + len(flat), dtype=weight.dtype))
            places += [(flat, number) for number in range(len(flat))]
        moved = layer.weights(mixer)
        for weight in mixer.parameters():
            weight.zero_()
        for name, numbers in moved.items():
            signed = (numbers - offsets[name]).flatten()
            values = (theirs[name].to(signed) - offsets[name]).flatten()
            for number, value in zip(signed.tolist(), values.tolist(), strict=True):
                if number:
                    flat, place = places[round(abs(number)) - 1]
                    flat[place] = value if number > 0 else -value


@pytest.mark.parametrize(("layout", "name", "whose", "options"), RECORDINGS)
def test_an_exported_layer_has_the_authors_names_shapes_and_numbers(
    layout: str, name: str, whose: str, options: dict[str, Any]
) -> None:
    found, mixer = recorded(name), make(name, **options).mixers[0]
    layer = LAYOUTS[layout].layer_of(mixer, name, layout)
    exported = layer.weights(mixer)
    assert {n: t.shape for n, t in exported.items()} == {
        n: t.shape for n, t in found.weights.items()
    }
    assert _agrees_with(layer, mixer, found)
    assert layer.home.rpartition(".")[2] in found.metadata["files"] or name == "mamba2"
    read_back(layer, mixer, found.weights)
    for key, weight in layer.weights(mixer).items():
        torch.testing.assert_close(weight, found.weights[key].to(weight))
    with torch.no_grad():
        if name == "gla":
            mixer.norm.weight[:] = mixer.norm.weight[0]  # theirs is one for all heads
        inputs = found.inputs.double()
        outputs, _ = mixer.scan(inputs, mixer.initial_state(len(inputs)))
    assert (outputs - found.outputs).abs().max() <= stated_difference(name, whose)


def _agrees_with(layer: AuthorsLayer, mixer: Any, found: Recorded) -> bool:
    """Whether arguments that both name are those that the authors' layer was built with."""
    ours = dict(layer.arguments(mixer, found.inputs.shape[-1]))
    return all(ours[key] == value for key, value in found.settings.items() if key in ours)


def test_exported_layers_of_an_xlstm_have_the_authors_names_shapes_and_numbers() -> None:
    found = recorded("xlstm")
    model = make("xlstm", width=8, heads=2, mlp=11 / 8)
    for number, outputs in enumerate(("mlstm_by_steps", "slstm")):
        mixer, start = model.mixers[number], f"xlstm_block_stack.blocks.{number}.xlstm."
        layer = LAYOUTS["xlstm"].layer_of(mixer, "xlstm", "xlstm")
        theirs = {n.removeprefix(start): t for n, t in found.weights.items() if n.startswith(start)}
        exported = layer.weights(mixer)
        assert {n: t.shape for n, t in exported.items()} == {n: t.shape for n, t in theirs.items()}
        read_back(layer, mixer, theirs)
        inputs = found.tensors["layer_inputs"]
        given, _ = mixer.scan(inputs, mixer.initial_state(len(inputs)))
        difference = (given - found.tensors[outputs]).abs().max()
        assert difference <= stated_difference(("mlstm", "slstm")[number], "NX-AI")


def test_a_layer_of_hgrn2_is_given_its_lower_bound() -> None:
    model = make("hgrn2", width=16, heads=2, layers=2)
    layer = LAYOUTS["fla"].layer_of(model.mixers[1], "hgrn2", "fla")
    shapes = {name: weight.shape for name, weight in recorded("hgrn2").weights.items()}
    assert {name: weight.shape for name, weight in layer.weights(model.mixers[1]).items()} == shapes
    assert torch.equal(layer.call(model.mixers[1])["lower_bound"], torch.full((16,), 0.5).double())


def test_layers_ran_in_the_authors_own_code_and_followed_their_machines() -> None:
    """On three words of more than a thousand symbols, as recorded."""
    found = json.loads(RECORDED_EXPORTS.read_text())
    assert {name.removesuffix(" fused_recurrent") for name in found} == set(CASES)
    assert exports_table(found) in (ROOT / "docs" / "test-a-kernel.md").read_text(encoding="utf-8")
    for name, row in found.items():
        assert row["wrong"] == 0 and row["symbols"] > 1000 and row["answers"] >= 3000, name
        assert row["margin"] > 0.9 * row["margin_in_float64"] and row["difference"] < 5e-3, name


# --- whole models of transformers ---


@pytest.mark.parametrize(
    ("model", "task", "options"),
    [
        ("mamba", "register", {}),
        ("mamba2", "register", {}),
        ("gated-deltanet", "parity", {"beta": "double"}),
        ("rwkv4", "register", {}),
    ],
)
def test_a_layer_of_transformers_follows_the_machine(
    model: str, task: str, options: dict[str, Any], tmp_path: Path
) -> None:
    built = st.build(task, model, **options)
    found = export(built.model, "transformers", tmp_path / "out", task=task, length=LENGTH)
    forward = runpy.run_path(str(found.folder / "model.py"))["forward"]
    words = np.load(found.folder / "words.npz")
    logits = forward(torch.from_numpy(words["tokens"]).long()).double()
    asked = words["answers"] >= 0
    assert (logits.argmax(-1).numpy() == words["answers"])[asked].all()
    rows = words["lengths"] > words["places"].max()
    kept = logits[rows][:, words["places"].tolist()]
    difference = (kept - torch.from_numpy(words["logits"][rows])).abs().max()
    # where a state is zero but for rounding, the norm divides it by the root of 10^-6
    assert difference < 5e-3 * np.abs(words["logits"][rows]).max()


def test_a_model_with_two_layers_and_mlps_is_read_as_it_is(tmp_path: Path) -> None:
    """Trained by nothing: golden words are cut where it is wrong, so its labels are all one."""
    torch.manual_seed(0)
    task = st.Task.from_automaton(st.Automaton(delta=[[0, 0]], output=[0], start=0), name="one")
    for kind in ("gelu", "swiglu"):
        settings = build_settings(
            MODELS["mamba"].settings_class,
            {"width": 8, "layers": 2, "mlp": 2.0, "mlp_kind": kind, "norm": "layer"},
            "mamba",
        )
        model = MODELS["mamba"](settings, num_symbols=2, num_labels=2).eval()
        with torch.no_grad():
            model.get_submodule("readout").bias.copy_(torch.tensor([50.0, 0.0]))
        found = export(model, "transformers", tmp_path / kind, task=task, length=20)
        forward = runpy.run_path(str(found.folder / "model.py"))["forward"]
        tokens = torch.randint(2, (3, 17))
        torch.testing.assert_close(forward(tokens), model(tokens), rtol=1e-4, atol=1e-4)
        assert "2 layers" in found.why_no_kernel and not (found.folder / "kernel.npz").exists()


# --- kernels ---


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    place = tmp_path_factory.mktemp("exported")
    return {name: make_folder(name, place / name, LENGTH) for name in ("parity", "s3", "delayed")}


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize("options", [(), ("--packed",), ("--pieces", "20")])
@pytest.mark.parametrize("folder", ["parity", "s3"])
def test_a_kernel_without_a_fault_is_right(
    name: str, options: tuple[str, ...], folder: str, folders: dict[str, Path]
) -> None:
    answer = check(folders[folder], f"kernels.py:{name}", options)
    assert answer.code == 0, answer.text
    assert answer.text.startswith("layer: all ") and "\nother-gauge: all " in answer.text


AT_ONCE = [
    "negative_eigenvalues_ignored",
    "gates_in_bfloat16",
    "beta_in_bfloat16",
    "state_dropped_at_chunks",
    "reflections_reversed",
    "reset_missed",
    "convolution_state_late",
    "guard_drops_equal_gates",
    "inverse_in_bfloat16",
]
"""Faults that are found within words of `LENGTH` symbols."""


@pytest.mark.parametrize("name", AT_ONCE)
def test_a_known_fault_is_found(name: str, folders: dict[str, Path]) -> None:
    fault = FAULTS[name]
    file = "layer.py" if fault.folder == "delayed" else "kernels.py"
    folder = folders["parity" if fault.folder == "parity" else fault.folder]
    answer = check(folder, f"{file}:{name}", fault.options)
    assert answer.code == 1 and "are WRONG, first at position" in answer.text, answer.text


def test_a_convolution_that_hands_on_its_inputs_rightly_is_right(folders: dict[str, Path]) -> None:
    answer = check(folders["delayed"], "layer.py:forward", ("--whole", "--pieces", "64"))
    assert answer.code == 0 and answer.text.startswith("model: all "), answer.text


def test_what_is_not_a_number_is_wrong(folders: dict[str, Path], tmp_path: Path) -> None:
    kernel = tmp_path / "nothing.py"
    kernel.write_text("def forward(q, v, **others):\n    return 0 * v / 0\n")
    answer = check(folders["parity"], f"{kernel}:forward")
    assert answer.code == 1 and "first at position 0" in answer.text


def test_the_recorded_faults_are_those_of_the_page() -> None:
    """At least eight of them are found by golden words, each within a minute."""
    found = json.loads(RECORDED.read_text())["faults"]
    assert set(found) == set(FAULTS)
    assert sum(row["found"] for row in found.values()) >= 8
    assert all(row["seconds"] < 60 for row in found.values())
    page = (ROOT / "docs" / "test-a-kernel.md").read_text(encoding="utf-8")
    assert table(found) in page


OTHERS: list[tuple[str, str, str, dict[str, Any]]] = [
    ("gla", "register", "gated_attention", {}),
    ("hgrn2", "register", "gated_attention", {}),
    ("kda", "parity", "kimi_delta", {"beta": "double"}),
    ("mamba", "register", "selective_scan", {}),
    ("mamba2", "register", "state_space_dual", {}),
    ("mlstm", "register", "matrix_memory", {}),
    ("rwkv7", "register", "rwkv7", {}),
]


@pytest.mark.parametrize(("model", "task", "kernel", "options"), OTHERS)
def test_arguments_of_a_kernel_are_those_of_its_equation(
    model: str, task: str, kernel: str, options: dict[str, Any], tmp_path: Path
) -> None:
    built = st.build(task, model, dtype="float64", **options)
    found = export(built.model, "safetensors", tmp_path / "out", task=task, length=LENGTH)
    assert found.kernel, found.why_no_kernel
    answer = check(found.folder, f"others.py:{kernel}")
    assert answer.code == 0, answer.text
    assert found.kernel in (found.folder / "README.md").read_text()


def test_every_kind_of_kernel_is_tested() -> None:
    mixers = {type(make(model).mixers[0]).__name__ for model, *_ in OTHERS}
    assert mixers | {"DeltaMixer"} == set(KERNELS)


def test_another_gauge_is_the_same_map() -> None:
    """Of random words over a table of maps, with gates of 1 and others, in float64."""
    draw = np.random.default_rng(0)
    tables = {
        "q": torch.randn(5, 2, 3),
        "k": torch.randn(5, 1, 2, 3),
        "v": torch.randn(5, 1, 2, 4),
        "beta": 2 * torch.rand(5, 1, 2),
        "g": torch.zeros(5, 2),
    }
    tables = {name: each.double() for name, each in tables.items()}
    line = torch.tensor([1.0, -2.0, 0.5]).double()
    tables["k"][:, :, 1] = line * torch.randn(5, 1, 1)  # the keys of the second head
    tables["beta"][0], tables["k"][0, 0, 1] = 1.9, line
    tables["g"][2] = -0.3
    tables["beta"][3] = 0
    gauged = tables | other_gauge(tables, draw)
    assert (gauged["g"][:, 0] == tables["g"][:, 0]).all()
    assert (gauged["g"][:, 1] != tables["g"][:, 1]).any()
    word = torch.from_numpy(draw.integers(5, size=(2, 12)))
    outputs = [
        kernels.right_step_by_step(**{n: t[word] for n, t in each.items()}, scale=1.0)[0]
        for each in (tables, gauged)
    ]
    torch.testing.assert_close(*outputs, rtol=1e-9, atol=1e-9)


# --- the folder ---


def test_check_kernel_is_short_and_stands_alone() -> None:
    for name, allowed in (
        ("check_kernel.py", {"numpy", "torch"}),
        ("model.py", {"safetensors", "torch"}),
    ):
        text = (STANDALONE / name).read_text(encoding="utf-8")
        assert len(text.splitlines()) < 110
        modules = set(_imported(ast.parse(text)))
        assert {module for module in modules if module not in _standard()} == allowed


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield str(node.module).partition(".")[0]


def _standard() -> frozenset[str]:
    import sys

    return sys.stdlib_module_names


def test_golden_words_have_the_answers_of_the_machine(folders: dict[str, Path]) -> None:
    for folder in folders.values():
        machine = json.loads((folder / "machine.json").read_text())
        words = np.load(folder / "words.npz")
        delta, output = np.array(machine["delta"]), np.array(machine["output"])
        answers = run_by_steps(delta, output, words["tokens"], machine["start"])
        inside = np.arange(words["tokens"].shape[1]) < words["lengths"][:, None]
        assert (words["answers"] == np.where(inside, answers, -1)).all()
        kinds = " ".join(words["kinds"])
        assert all(
            kind in kinds for kind in ("random", "power of", "runs", "edges of 64", "length 65")
        )
        assert (
            words["least"] == pytest.approx(words["margins"][inside].min()) and words["least"] > 0
        )


def test_words_end_before_the_first_wrong_answer_of_a_model(tmp_path: Path) -> None:
    """A model of parity whose readout is that of words of three symbols and no longer."""
    built = st.build("parity", "deltanet", dtype="float64", beta="double").model
    weight = built.get_submodule("blocks.0.mixer.betas").weight
    with torch.no_grad():
        weight.fill_(0.3)  # beta is no longer 2: the state is off after some symbols
    found = export(built, "safetensors", tmp_path / "out", task="parity", length=LENGTH)
    words = np.load(found.folder / "words.npz")
    assert 0 < words["lengths"].max() < LENGTH and found.longest == words["lengths"].max()
    assert (words["margins"][words["answers"] >= 0] > 0).all()


def test_a_run_is_exported_by_its_folder(tmp_path: Path) -> None:
    found = st.export(parity_run(tmp_path / "run"), "safetensors", tmp_path / "out", length=40)
    assert (
        found.layers == ()
        and found.why_no_kernel == "the model is not made of blocks around recurrent layers"
    )
    assert (found.folder / "model.safetensors").exists()
    assert json.loads((found.folder / "config.json").read_text())["task"] == "parity"


def test_what_a_folder_says_of_itself_is_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A model without layers of authors: no kernel, a whole model, and what was given wrongly."""
    task = st.Task.from_automaton(st.Automaton(delta=[[0, 0]], output=[0], start=0), name="one")
    model = st.make_model("gru", task, hidden=2)
    found = export(model, "safetensors", tmp_path / "out", task=task, length=20)
    read = (found.folder / "README.md").read_text()
    assert "python check_kernel.py FILE.py:FUNCTION --whole" in read
    assert "model.py" not in read and f"golden words of up to {found.longest} symbols" in read
    mine = tmp_path / "mine.py"
    mine.write_text("def forward(tokens):\n    return tokens[..., None] * 0.0 + 1.0\n")
    for arguments, says in (
        ((f"{mine}:forward",), "no kernel can be checked alone here: give a whole model"),
        ((f"{mine}:forwards", "--whole"), "the file has no function 'forwards'"),
        (("no.py:forward", "--whole"), "no.py': give FILE.py:FUNCTION"),
    ):
        assert check(found.folder, arguments[0], arguments[1:]).code == 2
        assert says in capsys.readouterr().err


def test_packed_words_are_all_of_them(folders: dict[str, Path]) -> None:
    each, packed = (
        check(folders["parity"], "kernels.py:right_step_by_step", options).text
        for options in ((), ("--packed",))
    )
    assert each.split(" answers")[0] == packed.split(" answers")[0]


class Turning(st.RecurrentModel):
    """Parity by complex gains 1 and -1, with a readout of 1/3."""

    settings_class = st.ModelSettings

    def __init__(self, settings: Any, **sizes: int) -> None:
        super().__init__(settings, **sizes)
        self.gains = torch.nn.Parameter(torch.tensor([1.0, -1.0 + 1e-9j], dtype=torch.complex64))
        self.reading = torch.nn.Parameter(torch.tensor([1 + 0.1j, -1 - 0.1j]) / 3)

    def initial_state(self, num_words: int) -> Tensor:
        return self.gains.new_ones(num_words)

    def step(self, symbols: Tensor, state: Any) -> tuple[Tensor, Any]:
        state = self.gains[symbols] * state
        return torch.view_as_real(state[:, None] * self.reading)[..., 0], state


def test_golden_words_of_complex_weights_are_computed_in_float64(tmp_path: Path) -> None:
    model = Turning(st.ModelSettings(), num_symbols=2, num_labels=2)
    found = export(model, "safetensors", tmp_path / "out", task="parity", length=20)
    logits = np.load(found.folder / "words.npz")["logits"]
    third = float(model.reading.detach().real[0])
    assert logits.dtype == np.float64 and np.abs(np.abs(logits) - third).max() < 1e-8
    assert (logits != logits.astype(np.float32)).any()


class Tied(MODELS["gru"]):
    """A GRU whose embedding has a second name."""

    def __init__(self, *args: Any, **sizes: Any) -> None:
        super().__init__(*args, **sizes)
        self.again = self.embedding


def test_weights_with_two_names_are_exported_under_both(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = Tied(Tied.settings_class(), num_symbols=2, num_labels=2)
    found = export(model, "safetensors", tmp_path / "out", task="parity", length=40)
    weights = load_file(found.folder / "model.safetensors")
    assert weights.keys() == model.state_dict().keys()
    assert torch.equal(weights["embedding.weight"], weights["again.weight"])


def refused(action: Callable[[], Exported]) -> str:
    with pytest.raises(st.StatetrackError) as caught:
        action()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_what_a_layout_cannot_hold_is_refused(tmp_path: Path) -> None:
    def of(model: str, layout: str, task: str = "parity", **options: Any) -> str:
        return refused(lambda: export(made(model, **options), layout, tmp_path / "out", task=task))

    def made(model: str, **options: Any) -> Any:
        settings = build_settings(MODELS[model].settings_class, options, model)
        return MODELS[model](settings, num_symbols=2, num_labels=2)

    assert "2 exp(dt A) - 1" in of("mamba", "mamba", eigenvalues="signed")
    assert "has no layer for MinMax" in of("minmax", "fla")
    assert "not made of blocks" in of("bilinear", "fla")
    assert "one key a position" in of("deltaproduct", "transformers")
    assert "forget gate" in of("deltanet", "transformers")
    assert "exponential" in of("slstm", "xlstm", forget="exponential")
    assert "convolution" in of("mlstm", "xlstm", conv=0)
    assert "size 256" in of("gated-deltanet", "fla", key_dim=300)
    assert "there is no layout 'flash'" in of("deltanet", "flash")
    assert "no automaton" in of("deltanet", "fla", task="anbn")
    torch.manual_seed(0)
    model = made("deltanet")
    assert "needs task" in refused(lambda: export(model, "fla", tmp_path / "out"))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("")
    built = st.build("parity", "deltanet", beta="double").model
    assert "not empty" in refused(lambda: export(built, "fla", tmp_path / "full", task="parity"))
    assert not (tmp_path / "out").exists()


def test_norms_that_differ_by_head_are_refused_by_gla() -> None:
    mixer: Any = make("gla", width=8, heads=2).mixers[0]
    with torch.no_grad():
        mixer.norm.weight[0] = 2
    with pytest.raises(st.StatetrackError, match="same weights in every head"):
        LAYOUTS["fla"].layer_of(mixer, "gla", "fla")


# --- commands ---


def test_a_run_is_exported_by_a_command_and_what_is_built_beside_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "exact"
    line = ["build", "parity", "--model", "deltanet", "--beta", "double", "--out", str(run)]
    line += ["--kernel", "torch"]
    assert command([*line, "--export", "fla", "--json"]) == 0
    beside = Path(json.loads(capsys.readouterr().out)["exported"])
    assert beside == tmp_path / "exact-fla" and (beside / "layer-0.safetensors").is_file()
    short = ["--length", "70", "--seed", "3"]
    assert command(["export", str(run), "--layout", "fla", "--json", *short]) == 1
    assert "exact-fla" in capsys.readouterr().err
    out = tmp_path / "mine"
    assert command(["export", str(run), "--out", str(out), "--json", *short]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["longest"] == 70 and said["layout"] == "safetensors" and said["margin"] > 0
    assert {"model.safetensors", "words.npz"} <= {each.name for each in out.iterdir()}
    loaded = export(st.Run.open(run), "fla", tmp_path / "again")
    assert loaded.layers == ("fla.layers.delta_net.DeltaNet",)
    for name in ("layer-0.safetensors", "frame.safetensors", "kernel.npz"):
        assert (beside / name).read_bytes() == (loaded.folder / name).read_bytes(), name


def test_a_layout_that_cannot_be_is_refused_by_commands_before_anything_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["build", "parity", "--model", "diagonal-real", "--out", str(tmp_path / "one")]
    for layout, said in (("mamba", "--export mamba"), ("flaa", "fla")):
        assert command([*line, "--export", layout]) == 1
        assert said in capsys.readouterr().err
    assert command(["build", "parity", "--model", "diagonal-real", "--export", "fla"]) == 1
    assert "--out" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
