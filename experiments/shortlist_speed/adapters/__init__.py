"""metarank itself; the peers are in `bench/systems`.

One file a system, each with a class `System` of the same methods, run in that system's environment.

System(params, threads)      `version` is that of the package
read(folder)                 bring the training part into memory, in the form the system trains from
train()                      all that lies between the data in memory and a model that can predict
save(folder)                 write the model, and leave the system ready to predict
prepare(X)                   rows in the form that `predict` takes; not part of any time
predict(rows, k)             the k best labels of each row, in the system's own form
top(predicted, k)            (labels, scores) of shape (n, k), best first, padded with -1
cuts(rows)                   where the system decides by itself: label sets (CSR) by the metric cut for
pairs(rows)                  where the system describes pairs: how many a row, by name
"""
