"""The end of training: what no training word sees is removed, and the rest is solved for.

A linear model that answers every training word still has modes that no such word shows: their
amplitude is tiny, their eigenvalues are a little above 1, and after thousands of symbols they
decide. `realization` finds the directions that training words do show, by singular values alone;
`equations` solves the squared error in these few coordinates, by Gauss-Newton steps in float64;
`factors` writes the result in the model's own parameters. Models of small blocks have no such
choice of coordinates: `blocks` finds those that keep a state of their own for every label, and
makes them agree on all transitions between labels. `finishing` does all of it.

It reads words of the training lengths that the replica was trained on, and knows nothing else of
the task.
"""
