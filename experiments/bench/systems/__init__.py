"""One file a system, each with a class `System` of the same methods, run in that system's environment.

System(params, threads)      `version` is that of the package
read(folder)                 bring the training part into memory, in the form the system trains from
train()                      all that lies between the data in memory and a model that can answer
save(folder)                 write the model, and leave the system ready to answer
prepare(X)                   rows in the form that `predict` takes; not part of any time
predict(rows, k)             the k best labels of each row, in the system's own form
top(predicted, k)            (labels, scores) of shape (n, k), best first, padded with -1

test_rows(folder)            instead of the matrix, where test rows are something else: an array
arrays(predicted, rows)      instead of `top`, where answers are no lists: what is judged, by name

and, where it has more to show than its lists:

lists(rows, k)               further lists (labels, scores) by name, from the same training
cuts(rows)                   where the system decides by itself: label sets (CSR) by the metric cut for
figures(rows)                numbers of its own, by name
"""
