"""Write the sentences that the demo model is trained on: `speech_demo/sentences.txt`.

    python speech_demo/text.py [--model FOLDER_OF_SmolLM2-135M-Instruct]

Two sources. SmolLM2 itself writes the beginnings of simple stories, each around a given common
word; a grammar (grammar.yaml) adds sentences of everyday life, for its vocabulary. A sentence that
shares five words in a row with any text of the mini set is dropped. A line of the file is one or a
few sentences that belong together. The file is kept in the repository: sampling from a language
model gives other words on another machine, and the tests hold the overlap rule to what was
really trained on.
"""

import argparse
import random
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import torch
import yaml
from tqdm import tqdm
from transformers import AutoModelForCausalLM, AutoTokenizer

HERE = Path(__file__).parent
SENTENCES = HERE / "sentences.txt"
MINI_SET = HERE.parent / "mini_set" / "sstorycloze.yaml"
SEED = 0
NGRAM = 5  # words in a row that no training text shares with the mini set
WRITTEN = 3200  # stories begun by the language model
GRAMMAR = 3600  # sentences out of the grammar
REQUESTS = (
    'Write the beginning of a short simple story with the word "{}". Use short sentences.',
    'Write three short simple sentences about everyday life with the word "{}".',
    'Write a short funny story for children with the word "{}".',
)
WORDS_A_SENTENCE = range(3, 23)
SPEAKABLE = re.compile(r"[A-Z][A-Za-z' ,]*[.!?]")
ABOUT_THE_TASK = re.compile(r"\b(sentence|certainly|example|once upon)", re.IGNORECASE)


def words(text: str) -> list[str]:
    """The words of a text, in lower case, without punctuation."""
    return re.findall(r"[a-z']+", text.lower().replace("\u2019", "'"))


def ngrams(texts: Iterable[str], n: int = NGRAM) -> set[tuple[str, ...]]:
    """Every run of `n` words in the texts."""
    return {
        tuple(run[start : start + n])
        for run in map(words, texts)
        for start in range(len(run) - n + 1)
    }


def mini_set_texts() -> list[str]:
    """Every English context and ending of the mini set, and each context with each ending.

    The joints count: a training text that runs from a context into its ending would tell.
    """
    texts = []
    for block in yaml.safe_load(MINI_SET.read_text(encoding="utf-8")):
        for item in block["items"]:
            texts += [f"{item['context']} {other['ending']}" for other in block["items"]]
    return texts


def sentences(text: str) -> list[str]:
    """The usable sentences with which a text begins: up to the first that cannot be spoken."""
    flat = " ".join(text.replace("\u2019", "'").replace('"', " ").split())
    usable = []
    for match in re.finditer(r"[^.!?]+[.!?]", flat):
        sentence = match.group().strip()
        speakable = SPEAKABLE.fullmatch(sentence) and not ABOUT_THE_TASK.search(sentence)
        if not speakable or len(words(sentence)) not in WORDS_A_SENTENCE:
            break
        usable.append(sentence)
    return usable


def invent(count: int, draw: random.Random) -> Iterator[str]:
    """Sentences out of the grammar."""
    grammar = yaml.safe_load((HERE / "grammar.yaml").read_text(encoding="utf-8"))
    noun_phrase = ("a_thing", "thing")

    def fill(match: re.Match[str]) -> str:
        name = match.group(1)
        if name not in noun_phrase:
            return draw.choice(grammar["nouns" if name == "noun" else name])
        noun = draw.choice(grammar["nouns"])
        phrase = f"{draw.choice(grammar['adjectives'])} {noun}" if draw.random() < 0.5 else noun
        article = "an" if phrase[0] in "aeiou" else "a"
        known = ["the", "the", "his", "her", "my", "their", article, article]
        return f"{article if name == 'a_thing' else draw.choice(known)} {phrase}"

    for _ in range(count):
        sentence = re.sub(r"{(\w+)}", fill, draw.choice(grammar["patterns"]))
        yield sentence[0].upper() + sentence[1:]


def write(model: str | Path, seeds: list[str], batch: int = 160) -> Iterator[str]:
    """One text of the language model around each of the words in `seeds`."""
    tokenizer = AutoTokenizer.from_pretrained(model, padding_side="left")
    tokenizer.pad_token = "<|endoftext|>"
    end = tokenizer.convert_tokens_to_ids("<|im_end|>")
    writer = AutoModelForCausalLM.from_pretrained(model, dtype=torch.bfloat16).eval()
    torch.manual_seed(SEED)
    for start in tqdm(range(0, len(seeds), batch), unit="batch"):
        prompts = [
            f"<|im_start|>user\n{REQUESTS[number % len(REQUESTS)].format(seed)}<|im_end|>\n"
            "<|im_start|>assistant\n"
            for number, seed in enumerate(seeds[start : start + batch])
        ]
        inputs = tokenizer(prompts, return_tensors="pt", padding=True, add_special_tokens=False)
        with torch.inference_mode():
            ids = writer.generate(
                input_ids=inputs.input_ids,
                attention_mask=inputs.attention_mask,
                max_new_tokens=40,
                do_sample=True,
                temperature=0.9,
                top_k=80,
                eos_token_id=end,
                pad_token_id=tokenizer.pad_token_id,
            )
        yield from tokenizer.batch_decode(
            ids[:, inputs.input_ids.shape[1] :], skip_special_tokens=True
        )


def common_words(count: int) -> list[str]:
    """Common English words, the most frequent function words left out."""
    from wordfreq import top_n_list

    listed = [word for word in top_n_list("en", 2 * count) if re.fullmatch("[a-z]{3,}", word)]
    return listed[80 : 80 + count]


def select(groups: Iterable[list[str]]) -> Iterator[str]:
    """Leave out what overlaps with the mini set or was there before; a group is cut there."""
    forbidden, seen, overlapping = ngrams(mini_set_texts()), set(), 0
    for group in groups:
        kept: list[str] = []
        for sentence in group:
            overlap = not forbidden.isdisjoint(ngrams([" ".join([*kept, sentence])]))
            overlapping += overlap
            key = " ".join(words(sentence))
            if overlap or key in seen:
                break
            seen.add(key)
            kept.append(sentence)
        if kept:
            yield " ".join(kept)
    print(f"{overlapping} sentences overlapped with the mini set and were dropped")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", type=Path, help="default: the demo's SmolLM2-135M-Instruct")
    given = parser.parse_args()
    if given.model is None:
        from s2s_tasks.demo.weights import model_folder

        given.model = model_folder("smollm2-135m-instruct")
    draw = random.Random(SEED)
    seeds = common_words(WRITTEN)
    draw.shuffle(seeds)
    groups = [sentences(text)[:3] for text in write(given.model, seeds)]
    groups += [[sentence] for sentence in invent(GRAMMAR, draw)]
    draw.shuffle(groups)
    lines = list(select(groups))
    SENTENCES.write_text("\n".join(lines) + "\n", encoding="utf-8")
    vocabulary = {word for line in lines for word in words(line)}
    mini = [word for text in mini_set_texts() for word in words(text)]
    known = sum(word in vocabulary for word in mini) / len(mini)
    print(f"{len(lines)} lines, {len(vocabulary)} words; {known:.1%} of the mini set's words known")


if __name__ == "__main__":
    main()
