"""A real browser: found on PATH, or named by CHROMIUM.

Without one the tests that want it are skipped; REQUIRE_BROWSER=1 makes them fail instead.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, sync_playwright

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--mute-audio",
]
WIDE, NARROW = 1280, 375


@contextmanager
def launched() -> Iterator[Browser]:
    path = (
        os.environ.get("CHROMIUM")
        or shutil.which("chromium")
        or shutil.which("google-chrome")
        or shutil.which("chrome")
    )
    if not path:
        if os.environ.get("REQUIRE_BROWSER") == "1":
            pytest.fail("no browser: install chromium, or name one with CHROMIUM")
        pytest.skip("no browser: install chromium, or name one with CHROMIUM")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()
