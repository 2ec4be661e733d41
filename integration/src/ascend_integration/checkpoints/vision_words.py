"""Tokenizers of whole words and punctuation for tiny models that see."""

from collections.abc import Sequence

from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

_SPECIAL = ["<pad>", "<s>", "</s>"]
# Of times between frames, `<0.5 seconds>`.
_TIMES = ["<", ">", ".", "seconds", *map(str, range(30))]


def vocabulary(markers: Sequence[str], size: int) -> dict[str, int]:
    """Ids of three special tokens, `markers`, what times are written with, and words `w0` and on, `size` in all."""
    known = [*_SPECIAL, *markers, *_TIMES]
    words = [f"w{index}" for index in range(size - len(known))]
    return {word: index for index, word in enumerate([*known, *words])}


def tokenizer(ids: dict[str, int], markers: Sequence[str]) -> PreTrainedTokenizerFast:
    """Words and punctuation apart; `markers` are whole wherever they stand."""
    words = Tokenizer(models.WordLevel(ids, unk_token="<pad>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    made = PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="<pad>", bos_token="<s>", eos_token="</s>", unk_token="<pad>"
    )
    made.add_special_tokens({"additional_special_tokens": list(markers)})
    return made
