"""The voting page's parts that keep nothing: who judges what, what is printed and served."""

from __future__ import annotations

import json
import socket
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
from arena_judgements import judged
from hypothesis import example, given
from hypothesis import strategies as st

from s2s_tasks.arena import log
from s2s_tasks.arena.page.preparing import by_system, read_battles
from s2s_tasks.arena.page.serve import greeting
from s2s_tasks.arena.page.sounds import PADDING, anonymous, respond
from s2s_tasks.arena.page.work import deal, deal_apart
from s2s_tasks.arena.records import Answer, Battle
from s2s_tasks.audio import probe
from s2s_tasks.errors import S2STasksError

NAMES = st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=5, unique=True)
COUNTS = st.integers(0, 40)
SHARES = st.floats(0, 1)


def keys(count: int) -> list[str]:
    return [f"battle {number}" for number in range(count)]


@given(COUNTS, NAMES, SHARES)
def test_every_battle_is_judged_and_a_share_of_them_twice(
    count: int, names: list[str], share: float
) -> None:
    dealt = deal(keys(count), names, share)
    assert len(set(dealt)) == len(dealt)
    times = Counter(Counter(battle for _, battle in dealt).values())
    doubled = round(share * count) if len(names) > 1 else 0
    assert (times[1], times[2]) == (count - doubled, doubled)


@given(COUNTS, NAMES, SHARES)
def test_work_is_split_evenly_and_follows_from_names_alone(
    count: int, names: list[str], share: float
) -> None:
    dealt = deal(keys(count), names, share)
    load = Counter(name for name, _ in dealt)
    assert max(load[name] for name in names) - min(load[name] for name in names) <= 1
    assert dealt == deal(keys(count)[::-1], names[::-1], share)


@given(COUNTS, NAMES, SHARES)
def test_a_deal_goes_on_where_it_stopped(count: int, names: list[str], share: float) -> None:
    first = deal(keys(count), names, share)
    held = {battle: [name for name, other in first if other == battle] for battle in keys(count)}
    assert deal(keys(count), names, share, held) == []
    assert deal(keys(count), ["a new one"], 0.0, held) == []


def test_what_one_skipped_another_gets() -> None:
    assert deal(["x"], ["anna", "ben"], 0.0, refused={"x": ["anna"]}) == [("ben", "x")]
    assert deal(["x"], ["anna"], 0.0, refused={"x": ["anna"]}) == []


def test_a_share_lies_between_nothing_and_all() -> None:
    with pytest.raises(ValueError, match="share"):
        deal(["x"], ["anna"], 1.5)


def test_bare_battles_are_read(tmp_path: Path) -> None:
    battle = {"instruction": "q\u2028", "first": "one", "second": "two", "propensity": 1, "seed": 0}
    path = tmp_path / "battles.jsonl"
    text = json.dumps(battle, ensure_ascii=False)
    path.write_text(f"{text}\n{text}", "utf-8")
    assert read_battles(path) == [Battle("q\u2028", "one", "two", 1, 0)] * 2
    for other in ("[1]", json.dumps({"battle": battle}), ""):
        path.write_text(f"{text}\n{other}\n{text}", "utf-8")
        with pytest.raises(S2STasksError, match="line 2"):
            read_battles(path)
    path.write_bytes(b"")
    assert read_battles(path) == []
    with pytest.raises(S2STasksError, match="cannot read"):
        read_battles(tmp_path)


def test_a_log_is_read_as_all_else_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    judgement = replace(judged("one", "two"), reply="\u2028 \u2029 \x85 \x0c")
    path.write_text('{"battle": {"instr', "utf-8")  # somebody was killed
    log.append(path, judgement)
    with path.open("a") as file:
        file.write('{"battle": {"instruction": "q", "fir')
    assert read_battles(path) == [one.battle for one in log.read(path)] == [judgement.battle]
    path.write_text(json.dumps({"judge": "x"}) + "\n")
    with pytest.raises(S2STasksError, match="line 1"):
        read_battles(path)


def test_a_system_that_is_named_twice_is_refused() -> None:
    given = [Answer(name, "q", "ok", None) for name in ("one", "two", "one")]
    with pytest.raises(S2STasksError, match="one answers q twice"):
        by_system(given)


TOPICS = st.sampled_from("uvwxyz")


@given(
    st.lists(TOPICS, max_size=12),
    NAMES,
    st.dictionaries(st.sampled_from("abcdefgh"), st.sets(TOPICS)),
)
def test_probes_are_split_evenly_and_each_goes_to_one(
    topics: list[str], names: list[str], met: dict[str, set[str]]
) -> None:
    probes = {f"probe {number}": topic for number, topic in enumerate(topics)}
    dealt = deal_apart(probes, names, met)
    assert sorted(key for _, key in dealt) == sorted(probes)
    load = Counter(name for name, _ in dealt)
    assert max(load[name] for name in names) - min(load[name] for name in names) <= 1
    held = {key: [name] for name, key in dealt[:3]}
    for name, key in dealt[:3]:
        met.setdefault(name, set()).add(probes[key])
    assert deal_apart(probes, names, met, held) == dealt[3:]


def test_probes_go_to_those_who_do_not_know_the_instruction() -> None:
    probes = {f"probe {number}": str(number) for number in range(8)}
    met = {"a": {"0", "2", "4", "6"}, "b": {"1", "3", "5", "7"}}
    dealt = deal_apart(probes, ["a", "b"], met)
    assert len(dealt) == 8 and not any(probes[key] in met[name] for name, key in dealt)
    # Two of one instruction go to two annotators.
    for number in range(20):
        one, other = deal_apart({f"p{number}": "q", f"r{number}": "q"}, ["a", "b"], {})
        assert one[0] != other[0]
    # Who skipped a probe does not get it again, and it goes to nobody where nobody is left.
    refused = {key: ["a"] for key in probes}
    assert {name for name, _ in deal_apart(probes, ["a", "b"], {}, {}, refused)} == {"b"}
    assert deal_apart(probes, ["a"], {}, {}, refused) == []


@pytest.mark.parametrize(
    ("host", "where", "warns"),
    [
        ("127.0.0.1", "http://127.0.0.1:80", False),
        ("::1", "http://[::1]:80", False),
        ("localhost", "http://localhost:80", False),
        ("192.0.2.1", "http://192.0.2.1:80", True),
        ("0.0.0.0", f"http://{socket.gethostname()}:80", True),
    ],
)
def test_links_are_printed_and_other_machines_warned_of(host: str, where: str, warns: bool) -> None:
    lines = greeting({"anna": "/vote/x"}, host, 80)
    assert lines[-1] == f"  anna: {where}/vote/x"
    assert lines[0].startswith("Beware") == warns


def test_a_served_recording_is_its_sound_alone(tmp_path: Path) -> None:
    path = tmp_path / "secret-system.flac"
    signal = np.random.default_rng(0).uniform(-0.5, 0.5, size=(4000, 2))
    with soundfile.SoundFile(path, "w", 22050, 2, format="FLAC", subtype="PCM_16") as file:
        file.title = file.artist = "secret-system"
        file.write(signal)
    assert b"secret" in path.read_bytes()
    sound = probe(path).load(24000)
    first, second = (anonymous(sound, 24000, id) for id in ("one id", "another"))
    assert first != second and len(first) != len(second)
    assert anonymous(sound, 24000, "one id") == first
    for data in (first, second):
        assert b"secret" not in data
        served = tmp_path / "served.wav"
        served.write_bytes(data)
        audio = probe(served)
        assert (audio.sampling_rate, audio.channels) == (24000, 1)
        assert len(data) == 44 + 2 * audio.frames  # a header that tells nothing, and samples
        assert 0 <= audio.frames - len(sound) < PADDING * 24000
        found = audio.load(24000)
        assert np.abs(found[: len(sound)] - sound).max() < 2**-15
        assert not found[len(sound) :].any()


DATA = bytes(range(100))


@given(st.integers(0, 120), st.none() | st.integers(0, 120))
@example(99, 99)
@example(5, 4)
def test_a_part_is_what_was_asked_for(first: int, last: int | None) -> None:
    response = respond(DATA, f"bytes={first}-{'' if last is None else last}")
    if first >= len(DATA):
        assert (response.status_code, bytes(response.body)) == (416, b"")
        assert response.headers["content-range"] == "bytes */100"
    elif last is not None and last < first:
        assert (response.status_code, bytes(response.body)) == (200, DATA)
    else:
        part = DATA[first : None if last is None else last + 1]
        assert (response.status_code, bytes(response.body)) == (206, part)
        assert response.headers["content-range"] == f"bytes {first}-{first + len(part) - 1}/100"


def test_the_end_of_a_recording_can_be_had() -> None:
    assert bytes(respond(DATA, "bytes=-30").body) == DATA[-30:]
    assert bytes(respond(DATA, "bytes=-300").body) == DATA
    assert respond(DATA, "bytes=-0").status_code == 416


@pytest.mark.parametrize(
    "asked", ["", "bytes=-", "bytes=x-", "items=0-3", "bytes=0-3,7-9", f"bytes={'9' * 5000}-"]
)
def test_what_asks_for_no_part_gets_all(asked: str) -> None:
    response = respond(DATA, asked)
    assert (response.status_code, bytes(response.body)) == (200, DATA)
