"""Regular expressions: they mean what Python's `re.fullmatch` says, or are refused with a place."""

import itertools
import random
import re

import pytest

from statetrack.errors import TaskError
from statetrack.sources import build_automaton

LETTERS = "abc"
WORDS = ["".join(word) for n in range(1, 7) for word in itertools.product(LETTERS, repeat=n)]


def made(pattern, **arguments):
    return build_automaton({"kind": "regex", "pattern": pattern, **arguments}, "here")


def members(automaton, words=WORDS):
    """The words that an automaton over `LETTERS` says are members."""
    delta, output = automaton.delta.tolist(), automaton.output.tolist()
    one = automaton.labels.index("1") if "1" in automaton.labels else None
    found = set()
    for word in words:
        state = automaton.start
        for letter in word:
            state = delta[state][LETTERS.index(letter)]
        if output[state] == one:
            found.add(word)
    return found


def right(pattern, words=WORDS):
    return {word for word in words if re.fullmatch(pattern, word)}


SYNTAX = """
a|b  (a|b)*ab  (?:a|b)+c  (?P<first>a)b?  a{2}  a{2,}  a{,3}b  a{2,3}c*  (ab){0}c  a{0}
.  a.b  .*a.*  [ab]c  [a-c]{2}  [^a]*  [^a-b]a?  [abc]*
a|  (|a)b  ()  ()*a  (a*)*  (a*b*)*c  (a|ab)(c|bcb)?  (a?){3}  ((a|b){2})*c  (a?b?){2,3}
^abc$  ^a|b$  (^a|b)c  a(b$|c$)  \\Aab\\Z  (?:^)?a  ^(a|b)*$  ^^a$$  (^a)?b
\\w+   \\D\\D  \\S*c  [\\w]{3}  [^\\s]b
"""


@pytest.mark.parametrize("pattern", SYNTAX.split())
def test_standard_syntax_means_what_re_fullmatch_says(pattern):
    assert members(made(pattern, alphabet=LETTERS)) == right(pattern)


def test_signs_are_symbols_behind_a_backslash_and_in_square_brackets():
    for pattern in (r"[a-]+\]", r"[]a]-*", r"[^]]*", r"[a\-\]]{2}", r"a\-\]?", r"\W*a"):
        automaton = made(pattern, alphabet="a-]")
        for word in (
            "".join(word) for n in range(1, 6) for word in itertools.product("a-]", repeat=n)
        ):
            label = automaton.labels_of(["a-]".index(letter) for letter in word])[-1]
            assert label == bool(re.fullmatch(pattern, word)), (pattern, word)


class Patterns:
    """Patterns drawn at random, nested up to a depth."""

    def __init__(self, seed):
        self.draw = random.Random(seed)

    def sides(self, depth):
        return "|".join(self.items(depth) for _ in range(self.draw.choice([1, 1, 2, 3])))

    def items(self, depth):
        return "".join(self.item(depth) for _ in range(self.draw.randrange(4)))

    def item(self, depth):
        plain = ["a", "b", "c", ".", "[ab]", "[^a]", "[a-b]", r"\w", "()", "(|a)"]
        inside = "" if depth == 0 or self.draw.random() < 0.5 else self.sides(depth - 1)
        opening = self.draw.choice(["(", "(?:"])
        base = f"{opening}{inside})" if inside else self.draw.choice(plain)
        # without `*` inside `*`, on which `re` takes for ever
        many = [] if re.search(r"[*+,}]", inside) else ["*", "+", "{2,}", "{0,3}"]
        return base + self.draw.choice(["", "", "", "?", "{2}", "{1,2}", "{,2}", "{0}", *many])


@pytest.mark.parametrize("seed", range(4))
def test_random_patterns_mean_what_re_fullmatch_says(seed):
    patterns = Patterns(seed)
    words = [word for word in WORDS if len(word) < 6] + patterns.draw.sample(WORDS, 100)
    for _ in range(60):
        pattern = patterns.sides(2)
        if len(pattern) > 60:  # on which `re` may take for ever
            continue
        assert members(made(pattern, alphabet=LETTERS), words) == right(pattern, words), pattern


def test_both_at_once_and_shuffled_are_written_explicitly():
    both = made("(a|bc)*&.*c&.{3,}", alphabet=LETTERS)
    assert members(both) == right("(a|bc)*") & right(".*c") & right(".{3,}")
    shuffled = members(made("(?shuffle:ab|cc)", alphabet=LETTERS))
    assert shuffled == {"abcc", "acbc", "accb", "cabc", "cacb", "ccab"}
    three = members(made("(?shuffle:a*|b|c)?", alphabet=LETTERS))
    assert three == right("(a*ba*ca*)|(a*ca*ba*)")


def test_symbols_longer_than_a_letter_are_separated_by_spaces():
    for pattern in ("(open close)*", "( open [close] ) *", "(open [^open shut])*"):
        automaton = made(pattern, alphabet=["open", "close", "shut"])
        assert automaton.symbols == ("open", "close", "shut")
        assert automaton.labels_of([0, 1, 0, 1, 2]).tolist() == [0, 1, 0, 1, 0]
    signs = made(r"(\(1,2\) e?)*", alphabet=["(1,2)", "e"])
    assert signs.labels_of([0, 1, 1]).tolist() == [1, 1, 0]
    alone = made("(open close)*")
    assert alone.symbols == ("close", "open")
    next_ones = made(
        "(open close|open shut)*", alphabet=["open", "close", "shut"], labels="next-symbols"
    )
    assert next_ones.labels == ("open", "close,shut", "none")


def test_without_an_alphabet_the_symbols_are_those_that_the_pattern_names():
    assert made("b*a").symbols == ("a", "b")
    assert made("[0-3]x").symbols == ("0", "1", "2", "3", "x")
    assert made(r"\(*\;").symbols == ("(", ";")
    assert made("b*a", alphabet="ba").symbols == ("b", "a")
    assert made(r"(\(\))*", alphabet="()").num_states == 3


REFUSED = {
    # a pattern over a and b: how the message begins, and what it says to write instead
    "a^b": (r"'^' at position 2", r"\^; to shuffle two languages write (?shuffle:A|B)"),
    "a$b": ("'$' at position 2", r"the symbol is written \$"),
    "(a$)b": ("'$' at position 3", "more follows it at position 5"),
    "(^a)*": ("'^' at position 2", "cannot stand in what '*' at position 5 repeats"),
    "(?shuffle:^a|b)": ("'^' at position 11", "at the beginning alone"),
    "a**": ("'*' at position 3", "as in (a*)*"),
    "*a": ("'*' at position 1", r"the symbol is written \*"),
    "a$*": ("'*' at position 3", "nothing before it"),
    "(ab": ("'(' at position 1", "the bracket is not closed"),
    "ab)": ("')' at position 3", "it closes no bracket"),
    "a{x}": ("'{x}' at position 2", "write {2}, {2,}, {,3} or {2,3}"),
    "a{,}": ("'{,}' at position 2", "write {2}, {2,}, {,3} or {2,3}"),
    "a{2,1}": ("'{2,1}' at position 2", "the first number is greater"),
    "a]": ("']' at position 2", r"\]"),
    "b[ab": ("'[ab' at position 2", "is not closed"),
    "[[:alpha:]]": ("'[:' at position 2", r"\["),
    "[a&&b]": ("'&&' at position 3", "sets are not combined"),
    "[b-a]": ("'b-a' at position 2", "from the lower letter to the higher"),
    "[c-d]": ("'c-d' at position 2", "no symbol in this range"),
    "[^ab]": ("'[^ab]' at position 1", "no symbol of the alphabet"),
    "a*?": ("'*?' at position 2", "a lazy quantifier is not taken: leave out the '?'"),
    "a++": ("'++' at position 2", "a possessive quantifier is not taken: leave out the '+'"),
    "(?=a)b": ("'(?=' at position 1", "a lookahead is not taken: words that begin with A"),
    "(?!a)b": ("'(?!' at position 1", "a negative lookahead"),
    "b(?<=a)": ("'(?<=' at position 2", "a lookbehind"),
    "b(?<!a)": ("'(?<!' at position 2", "a negative lookbehind"),
    "(?P<x>a)(?P=x)": ("'(?P=' at position 9", "no regular language"),
    r"(a)\1": (r"'\1' at position 4", "a backreference is not taken"),
    "(?i)a": ("'(?i)' at position 1", "a flag is not taken: for (?i) write [aA]"),
    "(?i:a)": ("'(?i:' at position 1", "a flag is not taken"),
    "(?#x)a": ("'(?#' at position 1", "a comment"),
    "(?>a)": ("'(?>' at position 1", "an atomic group"),
    "(a)?(?(1)a|b)": ("'(?(' at position 5", "a condition"),
    "(?R)": ("'(?R' at position 1", "recursion"),
    "(?~a)": ("'(?~' at position 1", "no group begins so"),
    r"a\b": (r"'\b' at position 2", "a word boundary"),
    r"\n": (r"'\n' at position 1", "cannot be the name of a symbol"),
    r"\x61": (r"'\x' at position 1", "write the character itself"),
    r"\p{L}": (r"'\p' at position 1", "write the symbols, as in [abc]"),
    r"\q": (r"'\q' at position 1", "the symbol is written q"),
    "a\\": (r"'\' at position 2", "nothing follows the backslash"),
    "ac": ("'c' at position 2", "no symbol of the alphabet, which is: a b"),
    "a|ε": ("'ε' at position 3", "the empty word is written ()"),
    "a&b|a": ("'|' at position 4", "beside '&' at position 2 brackets must say"),
    "(?shuffle:a&b)": ("'&' at position 12", "write (a&b) in brackets"),
}


@pytest.mark.parametrize("pattern", REFUSED)
def test_what_is_not_taken_is_named_with_its_place_and_what_to_write(pattern):
    where, instead = REFUSED[pattern]
    with pytest.raises(TaskError) as refused:
        made(pattern, alphabet="ab")
    message = str(refused.value)
    assert message.startswith(f"here: pattern: {where}: ") and instead in message
    assert "\n" not in message and len(message) < 250


@pytest.mark.parametrize(
    ("pattern", "alphabet", "message"),
    [
        ("a", "aa", "alphabet: 'a' appears twice"),
        ("a", "a b", "no name"),
        ("a", "", "it has 0 symbols"),
        ("a", [], "it has 0 symbols"),
        ("a", ["a b"], "no name"),
        ("(opne)*", ["open", "close"], "spaces stand between symbols. Did you mean 'open'?"),
        (r"\d", ["open", "close"], "it chooses among single letters"),
        (".*a", None, "'.' at position 1: it stands for symbols of the alphabet"),
        ("[^a]", None, "say which there are"),
        ("()", None, "the pattern names no symbol"),
        ("aε", None, r"the symbol is written \ε"),
    ],
)
def test_a_wrong_alphabet_is_refused(pattern, alphabet, message):
    with pytest.raises(TaskError) as refused:
        made(pattern, **({} if alphabet is None else {"alphabet": alphabet}))
    assert message in str(refused.value)
