"""Write the golden model of the current format.

Run once when `persist.FORMAT_VERSION` grows, never to repair a test.
"""

import json
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

import makers

from metarank import MetaRanker
from metarank.persist import FORMAT_VERSION

if __name__ == "__main__":
    data = makers.texts(40)
    model = MetaRanker(n_folds=2, n_jobs=1, ranker="lambdarank").fit(data)
    model.save(HERE / f"format-{FORMAT_VERSION}")
    rows = [*data.texts[:6], "salt and flour", "words never seen"]
    expected = {
        "texts": rows,
        "scores": model.decision_function(rows).tolist(),
        "probabilities": model.predict_proba(rows).tolist(),
        "labels": model.predict(rows).toarray().tolist(),
        "label_names": model.label_names_,
    }
    (HERE / f"format-{FORMAT_VERSION}.json").write_text(json.dumps(expected, indent=1) + "\n")
