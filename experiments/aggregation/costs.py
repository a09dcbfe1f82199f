"""What several objectives cost beside LightGBM's own LambdaRank; a round of whole-sample AUC on a million "
"rows."""

from __future__ import annotations

from chapter import Chapter, Settings
from speed import (
    AUC_ROWS,
    N_FEATURES,
    N_QUERIES,
    N_ROUNDS,
    PER_QUERY,
    as_table,
    round_costs,
    training_costs,
)

from metarank._util.threads import available_cores

_THREADS = 2
_REPEATS = 1
_MOST, _SECONDS = 1.3, 5.0


def chapter(settings: Settings) -> Chapter:
    part, repeats = (20, 1) if settings.quick else (1, _REPEATS)
    threads = min(_THREADS, available_cores())
    trained = training_costs(N_QUERIES // part, N_ROUNDS // part, threads, repeats)
    rounds = round_costs(AUC_ROWS // part, threads, repeats)
    out = Chapter("What it costs")
    for how in ("loss", "label"):
        told = ", ".join(f"{row[f'{how} / K runs']:.2f}" for row in trained)
        out.claim(
            f"{how} aggregation of K = 2 to 5 objectives: at most {_MOST:g} times K LambdaRank runs ({told})",
            all(row[f"{how} / K runs"] <= _MOST for row in trained),
        )
    slowest = max(row[name] for row in rounds for name in ("logistic", "hinge"))
    out.claim(f"a round of whole-sample AUC in seconds (at most {slowest:.2f} s)", slowest <= _SECONDS)
    how_often = "run once each" if repeats == 1 else f"medians of {repeats} runs"
    out.text = (
        f"{N_QUERIES // part * PER_QUERY:,} documents in {N_QUERIES // part:,} queries, {N_FEATURES} "
        "features, "
        f"{N_ROUNDS // part} rounds, {threads} threads, {how_often}, seconds of wall time beside other work "
        "on "
        "the machine: single ratios are rough. *lambdarank* is one run of LightGBM's own with the same "
        "parameters.\n\n"
        + as_table(trained)
        + f"\n\nGradient and Hessian of whole-sample AUC, {AUC_ROWS // part:,} rows, without queries:\n\n"
        + as_table(rounds)
    )
    return out
