"""What decides learning: a law fitted on the map, judged on machines that it was not fitted on.

`features` says what is known before training, `law` fits the chance, `machines` has the machines
that are held out, `predicted.json` what was said of them before any was trained, `recorded.json`
what training found, and `judging` compares the two. `python -m tests.learning` does each step.
"""
