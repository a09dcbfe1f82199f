"""metarank and a few peers by cross-validation on the training parts; the test parts stay unread.

python experiments/small_mlc/crossval.py [--sets emotions,scene] [--methods metarank,RBFSVM]
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import sys
import warnings

import numpy as np
from cache import FOLDER, Cache
from datasets import SETS, load_training_part, make_problem
from methods import LISTNET, METARANK, PEERS, RANKERS, Settings
from sklearn.exceptions import ConvergenceWarning
from stratified import stratified_folds
from tables import METRICS, Results, markdown

METHODS = {m.name: m for m in (METARANK, *RANKERS, *PEERS)}
DEFAULT_METHODS = (METARANK.name, LISTNET.name, "BinarySVM", "RBFSVM", "LightGBMOneVsRest", "ExtraTrees")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", default="emotions,scene,yeast", help=f"among {', '.join(SETS)}")
    parser.add_argument("--methods", default=",".join(DEFAULT_METHODS), help=f"among {', '.join(METHODS)}")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--fresh", action="store_true", help="measure everything anew")
    parser.add_argument("--n-jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    if unknown := set(options.methods.split(",")) - set(METHODS):
        parser.error(f"--methods must be among {', '.join(METHODS)}, got {', '.join(sorted(unknown))}")
    warnings.filterwarnings("ignore", category=ConvergenceWarning)
    settings = Settings(n_jobs=options.n_jobs, seed=options.seed)
    cache = Cache(fresh=options.fresh, folder=FOLDER / "crossval")
    for name in options.sets.split(","):
        X, Y, checksums = load_training_part(name)
        fold = stratified_folds(Y.astype(np.float32), options.folds, seed=options.seed)
        rows = []
        for method in (METHODS[m] for m in options.methods.split(",")):
            of_folds = []
            for f in range(options.folds):
                inside, outside = fold != f, fold == f
                problem = make_problem(name, X[inside], Y[inside], X[outside], Y[outside], checksums)
                if method.skips(problem):
                    break
                key = f"{method.key(problem, settings)} {options.folds}"
                result = cache.get(f"{name}-{f}", method.name, key, lambda: method.run(problem, settings))  # noqa: B023
                found = Results({name: problem.Y_test}, {(name, method.name): result})
                of_folds.append([found.value(name, method.name, metric) for metric in METRICS])
                print(f"{name} fold {f} {method.name}", file=sys.stderr, flush=True)
            if of_folds:
                mean, error = (
                    np.mean(of_folds, axis=0),
                    np.std(of_folds, axis=0, ddof=1) / np.sqrt(len(of_folds)),
                )
                rows.append([method.title, *(f"{m:.4f} ± {e:.4f}" for m, e in zip(mean, error))])
        print(f"\n{name}, {options.folds} folds of the training part: mean ± standard error\n")
        print(markdown(["", *METRICS], rows), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
