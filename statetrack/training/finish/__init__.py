"""The end of training: what no training word sees is removed, and the rest is solved for.

A linear model that answers every training word still has modes that no such word shows: their
amplitude is tiny, their eigenvalues are a little above 1, and after thousands of symbols they
decide. `realization` finds the directions that training words do show, by singular values alone;
`least_squares` solves the squared error in these few coordinates, by Gauss-Newton steps in float64,
and writes the result in factors where the model has them. Models of small blocks have no such
choice of coordinates: `blocks` finds those that keep a state of their own for every label, and
makes them agree on all transitions between labels. `exact` does all of it.

It reads words of the training lengths that the replica was trained on, and knows nothing else of
the task.
"""
