r"""Regular expressions: patterns that match whole words, as nondeterministic automata.

    a  \.         a symbol; after a backslash any sign is the symbol itself
    ab  a|b       one after the other; either. An empty side is the empty word, as is `()`
    a* a+ a?      any number, one or more, at most one
    a{2} a{2,} a{,3} a{2,3}
    .  [abc] [a-c] [^ab]  \d \D \w \W \s \S     any symbol; one of some symbols of the alphabet
    (...)  (?:...)  (?P<name>...)               a group; all three are alike
    ^  $  \A  \Z  \z                            nothing, at the beginning and the end of the pattern
    a&b           both at once: words that each side matches
    (?shuffle:a|b)  the words of all sides, one symbol of one and then one of another, in any order

All but the last two mean what they mean in Python's `re.fullmatch`. What else that has is refused
by its name, with its position and what to write in place of it.

Where an alphabet has a symbol longer than one letter, and where a pattern without a given alphabet
has a space, symbols are separated by spaces: `(open close)*`. Otherwise each letter is a symbol and
spaces mean nothing.

`reading` makes tokens of a text, `building` an automaton of tokens.
"""

from statetrack.sources.patterns.building import Nondeterministic, build
from statetrack.sources.patterns.reading import alphabet_of, read

__all__ = ["Nondeterministic", "alphabet_of", "build", "read"]
