"""Tokenizers of whole words for tiny models that are asked in text."""

from collections.abc import Sequence
from pathlib import Path

from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import BertTokenizer, PreTrainedTokenizerFast

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]


def save_word_tokenizer(words: Sequence[str], folder: Path) -> None:
    """A tokenizer that splits at spaces; ids are the four special tokens, then `words` in order."""
    vocabulary = {word: index for index, word in enumerate([*SPECIAL, *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[PAD]").save_pretrained(folder)


def save_bert_tokenizer(words: Sequence[str], folder: Path) -> None:
    """BERT's tokenizer, which joins a pair of texts as `[CLS] a [SEP] b [SEP]` with token types 0 and 1."""
    BertTokenizer(vocab={word: index for index, word in enumerate([*SPECIAL, *words])}).save_pretrained(folder)
