"""Scores of query and document, by a cross-encoder and by a decoder asked for yes or no, equal transformers'."""

import random
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, AutoTokenizer, PreTrainedModel

from ascend_integration.checkpoints.pooling import PoolingModel, Task
from ascend_integration.checkpoints.tokenizers import save_bert_tokenizer, save_word_tokenizer
from ascend_integration.engine.in_process import in_process_engine

WORDS = [f"w{index}" for index in range(100)] + ["yes", "no"]
CROSS_ENCODER = PoolingModel(
    "bert-cross-encoder", AutoModelForSequenceClassification, "bert", Task.CLASSIFY, "", {"num_labels": 1}
)
DECODER = PoolingModel(
    "qwen3-reranker",
    AutoModelForCausalLM,
    "qwen3",
    Task.CLASSIFY,
    "",
    {"num_key_value_heads": 2, "head_dim": 32, "tie_word_embeddings": True},
)


def texts(count: int, seed: int) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS[:100], k=draw.randint(1, 60))) for _ in range(count)]


def served_scores(folder: Path, query: str, documents: list[str], **settings) -> list[float]:
    with in_process_engine(
        str(folder),
        dtype="float32",
        additional_config={"allow_float32": True},
        max_num_batched_tokens=512,
        runner="pooling",
        **settings,
    ) as llm:
        return [output.outputs.score for output in llm.score(query, documents, use_tqdm=False)]


def load(family: PoolingModel, folder: Path) -> PreTrainedModel:
    return family.loader.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).eval()


@pytest.mark.supports("bert-cross-encoder", "scores of text pairs", "transformers, values")
@torch.inference_mode()
def test_cross_encoder(tmp_path: Path):
    folder = CROSS_ENCODER.save(tmp_path)
    save_bert_tokenizer(WORDS, folder)
    (query,), documents = texts(1, seed=1), texts(6, seed=2)
    model, tokenizer = load(CROSS_ENCODER, folder), AutoTokenizer.from_pretrained(folder)
    pairs = [tokenizer(query, document, return_tensors="pt") for document in documents]
    assert all(pair["token_type_ids"].any() for pair in pairs)
    expected = [model(**pair).logits.sigmoid().item() for pair in pairs]
    assert max(expected) - min(expected) > 0.01, "scores that are all alike would hide a wrong pair"
    assert served_scores(folder, query, documents) == pytest.approx(expected, rel=1e-4, abs=1e-5)


@pytest.mark.supports("qwen3-reranker", "scores of text pairs", "transformers, values")
@torch.inference_mode()
def test_decoder_asked_for_yes_or_no(tmp_path: Path):
    folder = DECODER.save(tmp_path)
    save_word_tokenizer(WORDS, folder)
    (query,), documents = texts(1, seed=1), texts(6, seed=2)
    model, tokenizer = load(DECODER, folder), AutoTokenizer.from_pretrained(folder)
    no, yes = tokenizer.convert_tokens_to_ids(["no", "yes"])
    expected = []
    for document in documents:
        last = model(**tokenizer(query + document, return_tensors="pt")).logits[0, -1]
        expected.append(last[[no, yes]].softmax(0)[1].item())
    overrides = {
        "architectures": ["Qwen3ForSequenceClassification"],
        "classifier_from_token": ["no", "yes"],
        "is_original_qwen3_reranker": True,
    }
    assert max(expected) - min(expected) > 0.01, "scores that are all alike would hide a wrong pair"
    served = served_scores(folder, query, documents, hf_overrides=overrides)
    assert served == pytest.approx(expected, rel=1e-4, abs=1e-5)
