"""Who speaks in training, and which of the mini set's voices are never heard there.

Two engines speak the training sentences, both free: Kokoro-82M (Apache-2.0), whose English voices
are those of the mini set and more, and flite (BSD-like), fast and robotic. Half of the mini set's
English voices, of both sexes and both accents, are kept out; so is a third engine, Piper, with
which evaluate.py speaks the mini set again.
"""

MINI_SET_HEARD = ("af_heart", "am_michael", "bf_emma", "bm_george", "af_bella", "am_puck")
MINI_SET_UNHEARD = ("am_fenrir", "bf_isabella", "bm_fable", "af_sarah", "af_aoede", "af_kore")
KOKORO = (
    *MINI_SET_HEARD,
    "af_alloy", "af_jessica", "af_nova", "af_river", "af_sky", "am_adam", "am_echo", "am_eric",
    "am_liam", "am_onyx", "bf_alice", "bf_lily", "bm_daniel", "bm_lewis",
)  # fmt: skip
FLITE = ("slt", "rms", "awb", "kal")
