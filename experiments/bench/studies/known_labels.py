"""Rows that have some of their labels: do these tell of the others?"""

from __future__ import annotations

import named_texts
import numpy as np
import page_parts
from declared import Lines, Study, System
from systems.half_known import DRAWS

prose = page_parts.prose_of(globals())

COOKING = "cooking_stackexchange-titles"
SETS = ("CiteULike-t-tags", "LastFM-ArtistTags", "LLMs4Subjects-dev-en", "Wikispeedia-Links", COOKING)
SYSTEM = System("metarank, no label names", "half_known", {"names": False})


def page(lines: Lines) -> str:
    rows = []
    for name in lines.sets:
        for line in lines.of(name, SYSTEM.name):
            if "failed" in line:
                rows.append([f"{name}: {line['failed']}"])
                continue
            without, told = 100 * np.array(line["nDCG@5"])
            gain, error = (told - without).mean(), 2 * np.std(told - without, ddof=1) / np.sqrt(DRAWS)
            shown = [f"{of.mean():.1f}" for of in (without, told)]
            rows.append([name, f"{line['rows']:,}", *shown, f"{gain:+.1f} ± {error:.1f}"])
    table = page_parts.table(["", "rows", "`exclude`", "`known`", "gain"], rows)
    return "\n\n".join(["# Rows that have some of their labels", prose("WHAT"), table])


STUDY = Study("known_labels", SETS, (SYSTEM,), None, page, make=named_texts.makers((COOKING,)))
