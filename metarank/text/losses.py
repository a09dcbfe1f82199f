"""Losses of a batch of scores: binary cross-entropy, or WARP."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

# By how much a relevant label should lead (WARP).
_MARGIN = 1.0


def bce_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """``sum -y log sigma(s) - (1 - y) log(1 - sigma(s))`` over all pairs of (n, M)."""
    return functional.binary_cross_entropy_with_logits(logits, targets, reduction="sum")


def warp_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Weighted approximate-rank pairwise loss (Weston et al., 2011), as TagSpace learns with.

    For each relevant label with score s, ``Phi(v)`` times the mean of ``max(0, 1 - s + s')`` over the v
    irrelevant labels for which that is positive; ``Phi(v) = sum_{j <= v} 1 / j``. The original draws labels
    until it finds one of the v and guesses v from the number of draws; here v is counted.
    """
    row, column = torch.nonzero(targets, as_tuple=True)
    lead = _MARGIN - logits[row, column][:, None] + logits[row]
    lead = torch.where(targets[row] > 0, torch.zeros_like(lead), lead.clamp(min=0))
    count = (lead > 0).sum(dim=1)
    harmonic = torch.cumsum(1 / torch.arange(1, logits.shape[1] + 1, device=logits.device), dim=0)
    weight = torch.where(count > 0, harmonic[(count - 1).clamp(min=0)] / count.clamp(min=1), 0.0)
    return (weight.to(lead) * lead.sum(dim=1)).sum()


FUNCTIONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"bce": bce_loss, "warp": warp_loss}
