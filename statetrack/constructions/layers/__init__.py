"""How layers take what constructions find: one file for each file of `statetrack.models`.

A file has functions `take_matrices`, `take_blocks`, `take_terms`, `take_gains`, `take_points`,
`take_maps`, `take_reflections`, `take_units` or `take_states`, which give the model of a case, or
a `Layer` under the name `register`, `signs` or `turns`, which says how its gates are set as
functions of its inputs.
"""
