"""The tokenizer inside a GGUF file → a transformers tokenizer with the hub's behaviour."""

from collections.abc import Iterator
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, normalizers, pre_tokenizers, processors
from tokenizers.models import BPE
from transformers import PreTrainedTokenizerFast

CONTROL, USER_DEFINED = 3, 4  # GGUF token types


def byte_level(metadata: dict[str, Any]) -> PreTrainedTokenizerFast:
    """GPT-2's byte-level BPE as SmolLM2 uses it: each digit stands alone; nothing is prepended."""
    merges = [tuple(merge.split(" ")) for merge in metadata["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(BPE(_vocabulary(metadata), merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    return _finish(tokenizer, metadata)


def gemma(metadata: dict[str, Any]) -> PreTrainedTokenizerFast:
    """Gemma's BPE with byte fallback; `<bos>` is prepended, as the model was trained."""
    vocabulary = _vocabulary(metadata)
    merges = list(_merges(vocabulary))
    tokenizer = Tokenizer(
        BPE(vocabulary, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    )
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<bos> $A", pair="<bos> $A <bos> $B", special_tokens=[("<bos>", vocabulary["<bos>"])]
    )
    return _finish(tokenizer, metadata)


def _vocabulary(metadata: dict[str, Any]) -> dict[str, int]:
    """Token → id. Runs of spaces, which GGUF spells out, get the `▁` of the model's vocabulary."""
    return {
        token.replace(" ", "▁") if not token.strip(" ") else token: number
        for number, token in enumerate(metadata["tokenizer.ggml.tokens"])
    }


def _merges(vocabulary: dict[str, int]) -> Iterator[tuple[str, str]]:
    """The merges a vocabulary in merge order implies: GGUF keeps none for Gemma.

    Every cut of a token into two tokens is a merge, and its rank is the token's place.
    """
    for token in vocabulary:
        cuts = [(token[:i], token[i:]) for i in range(1, len(token))]
        known = [(a, b) for a, b in cuts if a in vocabulary and b in vocabulary]
        yield from sorted(known, key=lambda cut: (vocabulary[cut[0]], vocabulary[cut[1]]))


def _finish(tokenizer: Tokenizer, metadata: dict[str, Any]) -> PreTrainedTokenizerFast:
    """Add the special tokens, their roles, the longest input and the chat template."""
    tokens = metadata["tokenizer.ggml.tokens"]
    kinds = list(zip(tokens, metadata["tokenizer.ggml.token_type"], strict=True))
    known = tokenizer.get_vocab()
    tokenizer.add_special_tokens(
        [AddedToken(token, normalized=False, special=True) for token, k in kinds if k == CONTROL]
    )
    tokenizer.add_tokens(
        [AddedToken(t, normalized=False) for t, k in kinds if k == USER_DEFINED and t in known]
    )
    family = metadata["general.architecture"]
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=tokens[metadata["tokenizer.ggml.bos_token_id"]],
        eos_token=tokens[metadata["tokenizer.ggml.eos_token_id"]],
        unk_token=tokens[metadata["tokenizer.ggml.unknown_token_id"]],
        pad_token=tokens[metadata["tokenizer.ggml.padding_token_id"]],
        model_max_length=metadata[f"{family}.context_length"],
        chat_template=metadata.get("tokenizer.chat_template"),
        clean_up_tokenization_spaces=False,
    )
