"""A tokenizer for the tiny models: token i is the i-th two-letter word, so that text and tokens are easy to compare."""

from pathlib import Path
from string import ascii_lowercase

from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from ascend_integration.checkpoints.tiny import VOCAB_SIZE

WORDS = [first + second for first in ascii_lowercase for second in ascii_lowercase][:VOCAB_SIZE]
SPECIAL = PADDING, BEGIN, END = WORDS[:3]


def text_of(tokens: list[int]) -> str:
    """The words of `tokens` with a space between two of them; special tokens have no text."""
    return " ".join(WORDS[token] for token in tokens if WORDS[token] not in SPECIAL)


def save_word_tokenizer(folder: Path) -> None:
    """Write the tokenizer beside a checkpoint whose padding, begin and end tokens are 0, 1 and 2."""
    words = Tokenizer(models.WordLevel({word: token for token, word in enumerate(WORDS)}, unk_token=PADDING))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token=PADDING, bos_token=BEGIN, eos_token=END, unk_token=PADDING
    ).save_pretrained(folder)
