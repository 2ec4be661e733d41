"""The laws of sampling in numpy, after vLLM's documentation of `SamplingParams`.

Every function takes logits `[vocabulary]` and returns new ones in float64; a forbidden token has minus infinity.
"""

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from ascend_integration.oracle import Reference

Logits = NDArray[np.float64]
# How a request's parameters change the logits at a step, given the tokens it has produced.
Edit = Callable[[Logits, Sequence[int]], Logits]


def log_softmax(logits: Logits) -> Logits:
    """Log-probabilities of the tokens."""
    shifted = logits - logits.max()
    return shifted - np.log(np.exp(shifted).sum())


def softmax(logits: Logits) -> Logits:
    """Probabilities of the tokens."""
    return np.exp(log_softmax(logits))


def forbid(logits: Logits, tokens: Sequence[int] | NDArray[np.bool_] | NDArray[np.intp]) -> Logits:
    """Without `tokens`, ids or a mask."""
    changed = logits.copy()
    changed[tokens] = -np.inf
    return changed


def top_k(logits: Logits, k: int) -> Logits:
    """The k most likely tokens and those that tie with the last of them; 0, -1 and the vocabulary size keep all."""
    if k <= 0 or k >= logits.size:
        return logits
    return forbid(logits, logits < np.sort(logits)[-k])


def top_p(logits: Logits, p: float) -> Logits:
    """The fewest most likely tokens whose probabilities add up to at least p; 1 keeps all, also the unlikeliest."""
    if p == 1:
        return logits
    order = np.argsort(-logits, kind="stable")
    reached_before = np.cumsum(softmax(logits)[order]) - softmax(logits)[order]
    return forbid(logits, order[reached_before >= p])


def min_p(logits: Logits, p: float) -> Logits:
    """The tokens at least p times as likely as the most likely one."""
    probabilities = softmax(logits)
    return forbid(logits, probabilities < p * probabilities.max())


def penalties(
    logits: Logits,
    prompt: Sequence[int],
    outputs: Sequence[int],
    repetition: float = 1.0,
    frequency: float = 0.0,
    presence: float = 0.0,
) -> Logits:
    """The three penalties: the first also counts the prompt; the last two follow OpenAI's definition."""
    changed = logits.copy()
    for token in set(prompt) | set(outputs):
        changed[token] *= 1 / repetition if changed[token] > 0 else repetition
    for token, count in Counter(outputs).items():
        changed[token] -= frequency * count + presence
    return changed


def next_logits(oracle: Reference, tokens: Sequence[int]) -> Logits:
    """The oracle's logits of the token after `tokens`."""
    return oracle.logits(tokens)[-1].to(torch.float64).numpy()


def greedy(oracle: Reference, prompt: Sequence[int], new_tokens: int, edit: Edit) -> tuple[list[int], list[Logits]]:
    """Tokens and their log-probability vectors of a greedy continuation whose logits are edited at each step."""
    tokens: list[int] = []
    steps: list[Logits] = []
    while len(tokens) < new_tokens:
        edited = edit(next_logits(oracle, [*prompt, *tokens]), tokens)
        steps.append(log_softmax(edited))
        tokens.append(int(edited.argmax()))
    return tokens, steps


def chi_square_p_value(counts: NDArray[np.int64], probabilities: Logits) -> float:
    """Probability of a deviation at least as large if `counts` are draws from `probabilities` (Pearson's test).

    Tokens expected less than five times are taken together, as the approximation asks for.
    """
    expected = probabilities * counts.sum()
    common = expected >= 5
    observed = np.append(counts[common], counts[~common].sum())
    expected = np.append(expected[common], expected[~common].sum())
    observed, expected = observed[expected > 0], expected[expected > 0]
    if len(expected) < 5:
        raise ValueError(f"{counts.sum()} draws are too few: only {common.sum()} tokens are expected five times")
    statistic = ((observed - expected) ** 2 / expected).sum()
    half_freedom = torch.tensor((len(expected) - 1) / 2, dtype=torch.float64)
    return float(torch.special.gammaincc(half_freedom, torch.tensor(statistic / 2, dtype=torch.float64)))
