"""The candidates with which a search begins."""

from __future__ import annotations

import json
from typing import Any, Dict, Sequence


def start_text(parts: Sequence[str], start: object) -> str:
    """The setting `start`.

    parts: the names of the genome's parts.
    start: a candidate or a list of candidates, each as the function gets it (a dict by name if there are several parts) or a
        card such as `results.best`; arrays of numpy are lists.

    Raises ValueError if it is none of these.
    """
    try:
        plain = json.loads(json.dumps(start, default=lambda one: one.tolist(), allow_nan=False))
    except (TypeError, ValueError, AttributeError) as why:
        raise ValueError(f"start must have lists of genes, or dicts with a list for each part: {why}") from None
    several = isinstance(plain, list) and all(isinstance(one, (list, dict)) for one in plain)
    return json.dumps([_by_part(parts, one) for one in (plain if several else [plain])])


def _by_part(parts: Sequence[str], candidate: Any) -> Dict[str, Any]:
    if isinstance(candidate, dict):
        genes = candidate.get("genes")
        return genes if isinstance(genes, dict) and "kind" in candidate else candidate
    if len(parts) > 1:
        raise ValueError(f"the genome has the parts {', '.join(parts)}: a candidate of start is a dict with the genes of each")
    return {parts[0]: candidate}
