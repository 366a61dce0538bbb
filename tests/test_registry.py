"""Registries and plug-ins: names found by place, loaded when asked for, never replaced."""

import importlib.metadata
import re
import sys

import pytest

from statetrack.catalogue import LISTINGS
from statetrack.errors import SettingsError, StatetrackError, UnknownNameError, nearest
from statetrack.models import MODELS
from statetrack.plugins import load_plugin, plugin_of
from statetrack.registry import Registry, modules_in
from statetrack.sources import KINDS
from statetrack.spec import TASKS
from statetrack.sweep import SUITES
from statetrack.training import PROTOCOLS


def registry(**things):
    """A registry whose loaders note that they were called."""
    loaded = []

    def loader(name):
        return lambda: loaded.append(name) or things[name]

    made = Registry("fruit", lambda: {name: loader(name) for name in things}, listing="list fruit")
    return made, loaded


def test_names_are_known_before_anything_is_loaded():
    fruit, loaded = registry(apple=1, pear=2)
    assert list(fruit) == ["apple", "pear"] and len(fruit) == 2 and "pear" in fruit
    assert loaded == []


def test_a_thing_is_loaded_once_when_first_asked_for():
    fruit, loaded = registry(apple=1, pear=2)
    assert fruit["pear"] == 2 and fruit["pear"] == 2
    assert loaded == ["pear"]


def test_a_wrong_name_is_suggested_and_the_listing_named():
    fruit, _ = registry(apple=1, pear=2)
    with pytest.raises(UnknownNameError) as error:
        fruit["appel"]
    assert str(error.value) == (
        "there is no fruit 'appel'. Did you mean 'apple'? `list fruit` shows all 2."
    )


def test_a_name_like_no_other_gets_no_suggestion():
    fruit, _ = registry(apple=1)
    with pytest.raises(UnknownNameError, match=r"^there is no fruit 'zzz'. `list fruit` shows"):
        fruit["zzz"]
    assert nearest("zzz", ["apple"]) == ""


def test_names_come_sorted_whether_found_or_registered():
    fruit, _ = registry(pear=2)
    assert fruit.register("apple")("an apple") == "an apple"
    assert list(fruit) == ["apple", "pear"] and fruit["apple"] == "an apple"


def test_a_name_registered_twice_is_refused():
    fruit, _ = registry()
    fruit.register("apple")(1)
    with pytest.raises(ValueError, match="fruit 'apple' is registered twice"):
        fruit.register("apple")(2)
    assert fruit["apple"] == 1


def test_modules_are_found_by_place_and_private_ones_left_out():
    found = modules_in("statetrack.models")
    assert "bilinear-cp" in found and not any(name.startswith("-") for name in found)


def test_a_thing_of_an_installed_package_is_found_by_its_entry_point(tmp_path, monkeypatch):
    (tmp_path / "their_fruit.py").write_text("KERNELS = 3")
    monkeypatch.syspath_prepend(tmp_path)
    entry = importlib.metadata.EntryPoint("pear", "their_fruit:KERNELS", "fruits")
    found = {"fruits": [entry]}
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: found[group])
    fruit = Registry("fruit", dict, listing="list fruit", entry_points="fruits")
    assert list(fruit) == ["pear"] and "their_fruit" not in sys.modules
    assert fruit["pear"] == 3
    del sys.modules["their_fruit"]
    twice = Registry("fruit", lambda: {"pear": int}, listing="list fruit", entry_points="fruits")
    message = "the entry point 'pear = their_fruit:KERNELS' of an installed package repeats the na"
    for _ in range(2):
        with pytest.raises(StatetrackError, match=message):
            list(twice)
    found["fruits"] = [entry, importlib.metadata.EntryPoint("pear", "other_fruit:PEAR", "fruits")]
    with pytest.raises(StatetrackError, match=r"and .* 'pear = other_fruit:PEAR' .* the same name"):
        list(Registry("fruit", dict, listing="list fruit", entry_points="fruits"))
    found["fruits"] = [importlib.metadata.EntryPoint("plum", "no_such_package:PLUM", "fruits")]
    lost = Registry("fruit", dict, listing="list fruit", entry_points="fruits")
    with pytest.raises(StatetrackError, match="'plum = no_such_package:PLUM' of an installed pack"):
        lost["plum"]


@pytest.mark.parametrize("found", [MODELS, TASKS, KINDS, PROTOCOLS, SUITES], ids=lambda r: r.kind)
def test_the_listing_that_a_registry_advises_exists(found):
    matched = re.fullmatch(r"statetrack list (\w+)", found._listing)
    assert matched and matched[1] in LISTINGS


def test_a_plugin_registers_by_being_imported(tmp_path):
    path = tmp_path / "half_parity.py"
    path.write_text(
        "from statetrack.sources import KINDS, Automaton\n"
        "@KINDS.register('half-parity-of-a-test')\n"
        "def half_parity():\n"
        "    return Automaton([[0, 1], [1, 0]])\n"
    )
    load_plugin(path)
    load_plugin(path)
    assert KINDS["half-parity-of-a-test"]().num_states == 2
    KINDS._things.pop("half-parity-of-a-test")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("missing.py", None, "there is no such file"),
        ("wrong.txt", "", "not a Python file"),
        ("exits.py", "import sys; sys.exit()", "cannot be imported: it ends the program"),
        ("broken.py", "1 / 0", "cannot be imported: ZeroDivisionError: division by zero ("),
        ("syntax.py", "def", "cannot be imported: SyntaxError"),
    ],
)
def test_a_plugin_that_cannot_be_imported_is_one_line(tmp_path, name, content, message):
    path = tmp_path / name
    if content is not None:
        path.write_text(content)
    with pytest.raises(SettingsError, match=re.escape(f"st.load_plugin({str(path)!r}): {message}")):
        load_plugin(path)


def kind_of(name, states):
    """A plugin's text: it registers a kind of so many states, an expression."""
    return (
        "from statetrack.sources import KINDS, Automaton\n"
        f"@KINDS.register({name!r})\n"
        "def kind():\n"
        f"    return Automaton([[(state + 1) % ({states})] for state in range({states})])\n"
    )


def test_a_plugin_imports_modules_beside_it_and_all_its_files_are_known(tmp_path):
    plugins = []
    for number, folder in enumerate((tmp_path / "a", tmp_path / "b"), start=2):
        (folder / "parts").mkdir(parents=True)
        (folder / "helper.py").write_text("from parts.sizes import STATES as HALF")
        (folder / "parts" / "__init__.py").write_text("")
        (folder / "parts" / "sizes.py").write_text(f"STATES = {number}")
        (folder / "unused.py").write_text("")
        plugin = folder / "mine.py"
        plugin.write_text("import helper\n" + kind_of(folder.name, "2 * helper.HALF"))
        load_plugin(plugin)
        plugins.append(plugin)
    for number, plugin in enumerate(plugins, start=2):
        folder = plugin.parent
        kind = KINDS[folder.name]
        assert kind().num_states == 2 * number
        files = plugin_of(KINDS.home(folder.name))
        assert files.path == plugin
        assert list(files.texts) == ["mine.py", "helper.py", "parts/__init__.py", "parts/sizes.py"]
        assert files.texts["parts/sizes.py"] == f"STATES = {number}".encode()
        assert str(folder) not in sys.path
    assert plugin_of(KINDS.home("parity")) is None


def test_what_a_module_beside_a_plugin_registers_comes_from_the_plugin_too(tmp_path):
    (tmp_path / "kinds_of_mine.py").write_text(kind_of("from-beside", 3))
    (tmp_path / "mine.py").write_text("import kinds_of_mine")
    load_plugin(tmp_path / "mine.py")
    assert list(plugin_of(KINDS.home("from-beside")).texts) == ["mine.py", "kinds_of_mine.py"]


def test_what_a_plugin_registered_before_its_mistake_is_forgotten(tmp_path):
    plugin = tmp_path / "mine.py"
    plugin.write_text("import beside\n" + kind_of("before-a-mistake", 3) + "1 / 0\n")
    (tmp_path / "beside.py").write_text(kind_of("beside-a-mistake", 2))
    with pytest.raises(SettingsError, match="division by zero"):
        load_plugin(plugin)
    assert "before-a-mistake" not in KINDS and "beside-a-mistake" not in KINDS
    plugin.write_text("import beside\n" + kind_of("before-a-mistake", 4))
    load_plugin(plugin)
    assert KINDS["before-a-mistake"]().num_states == 4
    assert KINDS["beside-a-mistake"]().num_states == 2


def test_a_mistake_in_a_module_beside_a_plugin_is_shown_there_and_can_be_corrected(tmp_path):
    (tmp_path / "beside.py").write_text("\n\nraise KeyError('x')")
    (tmp_path / "mine.py").write_text("import beside")
    with pytest.raises(SettingsError, match=r"KeyError: 'x' \(.*beside.py, line 3\)"):
        load_plugin(tmp_path / "mine.py")
    (tmp_path / "beside.py").write_text("SIZE = 1")
    load_plugin(tmp_path / "mine.py")


def test_a_plugin_cannot_take_the_name_of_a_model_that_comes_along(tmp_path):
    plugin = tmp_path / "thief.py"
    plugin.write_text(
        "from statetrack.models import MODELS\n\n@MODELS.register('lstm')\nclass Thief:\n    pass\n"
    )
    with pytest.raises(SettingsError, match="model 'lstm' is registered twice"):
        load_plugin(plugin)
