"""Files of machines in every format: machines that were written, changed, and hostile pieces."""

from __future__ import annotations

from pathlib import Path
from random import Random

from statetrack.sources import MACHINE_FORMATS, write_machine
from statetrack.spec import load_task
from tests.fuzz import mutations
from tests.fuzz.harness import Case, require, require_printable

TASKS = ("parity", "tomita-3", "s3", "flip-flop", "modular-addition:m=5")

FOREIGN = {
    "dot": 'digraph g { a -> b [label="x / 1"]; b -> a [label=<x<br/>2>]; b [shape=circle] }\n',
    "kiss2": ".i 2\n.o 1\n.p 3\n.s 2\n.r a\n-0 a b 1\n01 a a -\n-- b a 0\n.e\n",
    "aut": 'des (0, 2, 2)\n(0, "coin !1", 1)\n(1, push, 0)\n',
    "jff": "<structure><type>mealy</type><automaton><state id='0'><initial/></state>\n"
    "<transition><from>0</from><to>0</to><read>a</read><transout>b</transout></transition>\n"
    "</automaton></structure>\n",
    "fst": "0 1 a b\n1 0 c d 0.0\n0\n1 0\n",
    "scxml": "<scxml initial='a'><state id='a'><transition event='x y.z' target='b'>"
    "<send event='o'/></transition></state>\n<final id='b'/></scxml>\n",
    "xstate": '{"initial": "a", "states": {"a": {"on": {"X": {"target": "b", "actions": "o"}, '
    '"*": "a"}},\n "b": {"entry": [], "type": "final"}}}\n',
}
"""A file that another program could have written, in each format."""

PIECES = (
    *(
        '<!DOCTYPE a [<!ENTITY b "c">]>',
        "&b;",
        "&#0;",
        "&#27;",
        "<![CDATA[x]]>",
        "<!--",
        "<a>" * 3000,
    ),
    *("<parallel/>", "<history id='h'/>", '<onentry><log expr="\'\\"/></onentry>', "]]>", "<?x?>"),
    *("[" * 5000, '{"a":' * 5000, "NaN", "1e999", "9" * 5000, '"\\ud800"', "null", '"*": "a",'),
    *(
        "subgraph {" * 500,
        "/*",
        "//",
        "\\N",
        '"\\',
        "<<b>>",
        "a -> {b c} -> d",
        "[label=",
        "graph",
        "--",
    ),
    *(
        ".i 99999999999",
        ".p 7",
        "#@ symbol 01 x",
        "#@ start",
        "-" * 3000,
        "* * * *",
        ".e",
        "0 1 2 3",
    ),
    *("des (0, 0, 0)", "(0, i, 0)", '(0, "a, 1)', "(99999999999999999999, a, 0)", "(-1, a, ²)"),
    *("0 0 <eps> a", "0 0 a 0 inf", "0 0 a b -0", "x", "\t\t\t", "9\t9\t\\\t\\0"),
    *(
        "\ufeff",
        "\x00",
        "\x1b[31m",
        "\u202e",
        "\u2028",
        "\x85",
        "\r",
        "\x0b",
        "e\u0301",
        "\U000e0001",
    ),
    *(
        "a" * 5000,
        " " * 5000,
        "\n" * 500,
        "%s",
        "{0}",
        "a/b/c",
        "a.b.*",
        "_x0000_",
        "_xD800_",
        "_x1B_",
    ),
)


class MachineFiles:
    """A file of a machine, loaded as a task; what loads is written and read again."""

    name = "machine-files"

    def prepare(self, folder: Path) -> None:
        """Write some machines in every format."""
        automata = [load_task(name).automaton for name in TASKS]
        self.texts = {
            form: [FOREIGN[form], *(write_machine(automaton, form) for automaton in automata)]
            for form in MACHINE_FORMATS
        }

    def attempt(self, case: Case) -> None:
        """Load one file."""
        random = case.random
        form = random.choice(list(MACHINE_FORMATS))
        name = f"machine{random.choice(MACHINE_FORMATS[form].endings)}"
        Path(name).write_bytes(self._file(random, form))
        task = case.call(f"load_task({name!r})", lambda: load_task(name))
        if task is None:
            return
        require_printable(task.document(), "a task")
        other = random.choice(list(MACHINE_FORMATS))
        text = case.call(f"write_machine({other!r})", lambda: write_machine(task.automaton, other))
        if text is not None:
            again = f"again{MACHINE_FORMATS[other].endings[0]}"
            Path(again).write_text(text, encoding="utf-8")
            same = load_task(again).automaton.fingerprint() == task.automaton.fingerprint()
            require(same, f"another machine is read: from {other}, as {form} had it")

    def _file(self, random: Random, form: str) -> bytes:
        """The content of a file."""
        text = random.choice(self.texts[form])
        draw = random.random()
        if draw < 0.05:
            text = random.choice(self.texts[random.choice(list(self.texts))])
        elif draw < 0.5:
            text = mutations.change_text(random, text)
        elif draw < 0.8:
            place = random.randrange(len(text) + 1)
            end = place if random.random() < 0.7 else min(len(text), place + 30)
            text = text[:place] + random.choice(PIECES) + text[end:]
        elif draw < 0.84:
            text = text[: random.randrange(len(text) + 1)]
        elif draw < 0.87:
            return text.encode(random.choice(["utf-16", "utf-32", "utf-8-sig", "utf-16-be"]))
        else:
            return mutations.change_bytes(random, text.encode())
        return text.encode("utf-8", "surrogatepass")
