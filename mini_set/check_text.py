"""Check the text of a small benchmark set, before any of it is turned into speech.

A set is a YAML list of blocks. The items of a block are crossed: the ending of each item is true
after its own context and false after the context of any other item of the block. A model that
looks only at the endings is right exactly half of the time.

Without ``--model`` only the form is checked. With it a causal language model reads the text,
which shows whether the contexts decide and which items deserve another look:

    python mini_set/check_text.py mini_set/sstorycloze.yaml --model DIR --topic 4

The exit status is 1 if the form of any file has a problem, whatever the model says.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import permutations
from pathlib import Path
from typing import NamedTuple

import yaml

MAX_LENGTH_RATIO = 1.25  # longest to shortest ending of a block, in characters
BATCH_SIZE = 4  # small, because the logits of a large vocabulary fill the memory
IGNORED = -100  # torch's own mark for a target without a loss, here the padding
TOPIC_SEED = 0  # the same draw in every run, so that two runs can be compared

CJK = re.compile(r"[\u3400-\u9fff]")
UNSPEAKABLE = re.compile(r"[^A-Za-z .,'?]")
UNSPEAKABLE_CJK = re.compile(r"[^\u3400-\u9fff，。？！、；：]")
SENTENCE_END = re.compile(r"[.?!。？！]+")


class Item(NamedTuple):
    """A context with its true ending; the name is the block and the place in it."""

    name: str
    context: str
    ending: str


Block = list[Item]
Pair = tuple[Item, str]  # an item and an ending that is false for it
Scorer = Callable[[str, list[str]], list[float]]  # losses of endings after a context


def load_blocks(path: Path) -> dict[str, Block]:
    """Read a set by block id; keys that only describe an item are left alone."""
    blocks: dict[str, Block] = {}
    for entry in yaml.safe_load(path.read_text(encoding="utf-8")):
        name = entry["block"]
        if name in blocks:
            raise ValueError(f"{path}: duplicate block id {name}")
        items = enumerate(entry["items"], start=1)
        blocks[name] = [Item(f"{name}.{n}", item["context"], item["ending"]) for n, item in items]
    return blocks


def form_problems(blocks: dict[str, Block], cjk: bool) -> Iterator[str]:
    """Say everything that is wrong with a set and needs no understanding to see."""
    usual_size = Counter(map(len, blocks.values())).most_common(1)[0][0]
    for name, block in blocks.items():
        if len(block) < 2 or len(block) != usual_size:
            yield f"{name}: {len(block)} items (most blocks have {usual_size})"
        lengths = [len(item.ending) for item in block]
        if max(lengths) > MAX_LENGTH_RATIO * min(lengths):
            yield f"{name}: endings of {min(lengths)} to {max(lengths)} characters"

    items = [item for block in blocks.values() for item in block]
    texts = Counter(text for item in items for text in (item.context, item.ending))
    yield from (f"occurs {n} times: {text}" for text, n in texts.items() if n > 1)
    unspeakable = UNSPEAKABLE_CJK if cjk else UNSPEAKABLE
    found = ((sorted(set(unspeakable.findall(text))), text) for text in texts)
    yield from (f"characters {characters} in: {text}" for characters, text in found if characters)


def sentence_counts(texts: list[str]) -> str:
    """Say how many texts have how many sentences, such as '78 of 4, 2 of 5'."""
    counts = Counter(len(SENTENCE_END.findall(text)) for text in texts)
    return ", ".join(f"{count} of {n}" for n, count in sorted(counts.items()))


def crossed_pairs(blocks: list[Block]) -> list[Pair]:
    """Pair each item with the endings of the other items of its block."""
    return [(item, other.ending) for block in blocks for item, other in permutations(block, 2)]


def topic_pairs(blocks: list[Block], k: int) -> list[Pair]:
    """Pair each item with `k` endings from other blocks, as the topic variant does."""
    draw = random.Random(TOPIC_SEED)
    pairs = []
    for block in blocks:
        foreign = [item.ending for other in blocks if other != block for item in other]
        k = min(k, len(foreign))
        pairs += [(item, ending) for item in block for ending in draw.sample(foreign, k)]
    return pairs


def margins(pairs: list[Pair], score: Scorer, *, with_context: bool) -> list[float]:
    """Return by how much each true ending is likelier than the false one."""
    rows = [(item.context if with_context else "", item.ending, false) for item, false in pairs]
    # Each ending is scored once in a context, so that rounding, which depends on the batch,
    # cannot spoil the exact 0.5 of a run without context.
    loss: dict[str, dict[str, float]] = {}
    for context, true, false in rows:
        loss.setdefault(context, {}).update({true: 0.0, false: 0.0})
    for context, endings in loss.items():
        endings.update(zip(endings, score(context, list(endings)), strict=True))
    return [loss[context][false] - loss[context][true] for context, true, false in rows]


def accuracy(values: list[float]) -> float:
    """Return the share of margins that are right; a tie counts one half."""
    return sum(0.5 if value == 0 else value > 0 for value in values) / len(values)


def make_scorer(model_name: str, joiner: str, threads: int) -> Scorer:
    """Load a causal language model that scores endings by their mean token loss."""
    # Imported here because the form must also be checked where there is no torch.
    import torch
    from torch.nn.functional import cross_entropy
    from torch.nn.utils.rnn import pad_sequence
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.set_num_threads(threads)
    tokenizer = AutoTokenizer.from_pretrained(model_name)
    model = AutoModelForCausalLM.from_pretrained(model_name, dtype=torch.float32).eval()
    # Without a token in front, the first token of an ending without context has no score.
    # Models that are trained without BOS know this one from between documents.
    start = torch.tensor(tokenizer.encode("") or tokenizer.encode("<|endoftext|>"))

    def encode(text: str) -> torch.Tensor:
        return torch.tensor(tokenizer.encode(text, add_special_tokens=False), dtype=torch.long)

    @torch.inference_mode()
    def score(context: str, endings: list[str]) -> list[float]:
        prefix = torch.cat([start, encode(context)])
        losses: list[float] = []
        for at in range(0, len(endings), BATCH_SIZE):
            batch = [encode(joiner + ending) for ending in endings[at : at + BATCH_SIZE]]
            target = pad_sequence(batch, batch_first=True, padding_value=IGNORED)
            # The padding stands on the right, where a causal model does not look.
            rows = torch.cat([prefix.expand(len(batch), -1), target.clamp(min=0)], dim=1)
            logits = model(rows, logits_to_keep=target.shape[1] + 1).logits[:, :-1]
            loss = cross_entropy(logits.transpose(1, 2), target, reduction="none")
            losses += (loss.sum(1) / (target != IGNORED).sum(1)).tolist()
        return losses

    return score


def report_model(blocks: list[Block], score: Scorer, topic: int) -> None:
    """Print how well a model tells true endings from false ones, and its errors."""
    pairs = crossed_pairs(blocks)
    values = margins(pairs, score, with_context=True)
    print(f"  pair accuracy with context: {accuracy(values):.3f} of {len(values)} pairs")
    print(f"  without context: {accuracy(margins(pairs, score, with_context=False)):.3f}")
    if topic:
        topical = margins(topic_pairs(blocks, topic), score, with_context=True)
        print(f"  with {topic} endings of other blocks: {accuracy(topical):.3f}")
    for value, (item, false) in sorted(zip(values, pairs, strict=True)):
        if value <= 0:
            print(f"  {value:+.2f} {item.name}: {item.ending} PREFERRED: {false}")


def main() -> int:
    """Check every file and return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", metavar="FILE", nargs="+", type=Path)
    parser.add_argument("--model", metavar="DIR_OR_HUB_ID", help="a causal language model")
    parser.add_argument("--limit", metavar="N", type=int, help="let it read N blocks only")
    parser.add_argument("--topic", metavar="K", type=int, default=0, help="also K foreign endings")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads for it")
    args = parser.parse_args()

    failed = False
    for path in args.files:
        blocks = load_blocks(path)
        items = [item for block in blocks.values() for item in block]
        cjk = any(CJK.search(item.ending) for item in items)
        problems = list(form_problems(blocks, cjk))
        failed |= bool(problems)
        print(f"{path}: {len(blocks)} blocks, {len(items)} items")
        print(f"  sentences in contexts: {sentence_counts([item.context for item in items])}")
        print("\n".join(f"  PROBLEM {problem}" for problem in problems) or "  form ok")
        if args.model:
            score = make_scorer(args.model, "" if cjk else " ", args.threads)
            report_model(list(blocks.values())[: args.limit], score, args.topic)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
