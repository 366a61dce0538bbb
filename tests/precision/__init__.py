"""The law of precision: how long a state is followed when it is rounded to so many bits.

`loops` computes what `statetrack.models.Rounded` does, `words` searches words on which it fails,
`points` says what is measured, and `python -m tests.precision` records it in `recorded.json`.
"""
