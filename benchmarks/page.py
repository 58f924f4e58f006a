"""The web page in a real browser: its first look, a key's way to its echo, and a flood while it watches."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import count
from statistics import median, quantiles

import psutil
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright
from playwright.sync_api import TimeoutError as TimedOut
from tests.served import Served
from tests.web.browser import MISSING, how_to_launch
from tests.web.room import Room

from benchmarks.arena import arena
from benchmarks.measure import Effort, Group, Row, in_turns
from benchmarks.serving import serving
from benchmarks.terminals import FLOODING, MB, echoed, flood_watched, start_solo, watching

_MIB = 1 << 20
_PATIENCE = 120_000
_AGENTS = 13
_SLOWER = 6
_LOOK_AGAIN = 0.01
_TAIL = 200
_SHOWS = "(text) => document.querySelector('.whole .xterm-rows')?.textContent.includes(text)"
# The moment, since the page was asked for, at which every tile is live and shows something.
_ALL_LIVE = f"""() => {{
    const shown = [...document.querySelectorAll('.tile .window:not(.away) .xterm-rows')];
    return shown.length === {_AGENTS} && shown.every((one) => one.textContent.trim()) && performance.now();
}}"""
_PAINTED = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
# From a key, as the browser got it, until there is one more such letter in the page.
_LISTEN = """() => {
    const rows = document.querySelector('.whole .xterm-rows');
    const letters = () => rows.textContent.split('x').length;
    let pressed = 0, before = 0;
    window.echoes = [];
    document.addEventListener('keydown', (event) => { pressed = event.timeStamp; before = letters(); }, true);
    new MutationObserver(() => {
        if (!pressed || letters() <= before) return;
        window.echoes.push(performance.now() - pressed);
        pressed = 0;
    }).observe(rows, { childList: true, subtree: true, characterData: true });
}"""


def measure(effort: Effort) -> Group:
    title = "The web page"
    launch = how_to_launch()
    if launch is None:
        return Group(title, (), (f"Left out: {MISSING}.",))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(**launch)
        try:
            rows = (*_first_looks(effort, browser), *_echoes(effort, browser), *_floods(effort, browser))
            notes = _notes(browser.version)
        finally:
            browser.close()
    return Group(title, rows, notes)


def _notes(version: str) -> tuple[str, ...]:
    return (
        f"Chromium {version} without a graphics card, on the same machine as the server and the agents.",
        "First look: an empty cache, a browser that is signed in, the address of a demo team of 13; bytes are those"
        " of every HTTP answer, headers included, until all terminals are live.",
        "Echo: from the key's own time stamp until the letter is in the page; floor: the same by a bare WebSocket.",
        f"Flood: as for live terminals, at full size; slowed down: the browser gets a {_SLOWER}th of its processor.",
        "Memory: the server and its helpers, looked at every 10 ms while page and WebSocket watch floods in turns.",
    )


def _first_looks(effort: Effort, browser: Browser) -> list[Row]:
    with arena() as site, serving(site) as served:
        session = str(site.json("start", "--provider", "demo")["sessionId"])
        site.mas("wait", "--session", session, timeout=120)
        with _signed_in(browser, served) as room:
            found = [_first_look(room.page.context, served, session) for _ in range(effort.repeats(10) + 1)][1:]
        site.mas("stop", session)
    paint, live, size = map(median, zip(*found, strict=True))
    return [
        Row("first contentful paint, nothing cached", paint, bound="0.7 s", limit=0.7),
        Row("bytes transferred on that load", size, bound="250 kB", limit=250.0, unit="kB"),
        Row(f"load → {_AGENTS} live terminals", live),
    ]


def _first_look(context: BrowserContext, served: Served, session: str) -> tuple[float, float, float]:
    """When something was painted and when all terminals were live, in seconds; how many kilobytes came."""
    with closing(context.new_page()) as page:
        sizes: list[float] = []
        network = context.new_cdp_session(page)
        network.send("Network.clearBrowserCache")
        network.on("Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"]))
        network.send("Network.enable")
        page.goto(f"{served.url}/#/sessions/{session}")
        live = page.wait_for_function(_ALL_LIVE).json_value()
        return page.evaluate(_PAINTED) / 1000, live / 1000, sum(sizes) / 1000


def _echoes(effort: Effort, browser: Browser) -> list[Row]:
    with arena() as site, serving(site) as served:
        session, bare = start_solo(site, ["cat"]), start_solo(site, ["cat"])
        floors: list[float] = []
        with _typing(browser, served, session) as page, watching(served.url, served.token, bare) as viewer:
            page.evaluate(_LISTEN)
            for number in range(effort.repeats(150)):
                page.keyboard.press("x")
                page.wait_for_function("(number) => echoes.length > number", arg=number)
                floors.append(echoed(viewer))
            took = [milliseconds / 1000 for milliseconds in page.evaluate("echoes")]
        site.mas("stop", "--all")
    what = "a key until its echo is in the page"
    return [
        Row(f"{what}: p50", median(took), "a bare WebSocket", median(floors)),
        Row(f"{what}: p90", quantiles(took, n=10)[-1], "a bare WebSocket", quantiles(floors, n=10)[-1]),
    ]


def _floods(effort: Effort, browser: Browser) -> Iterator[Row]:
    with arena() as site, serving(site) as served:
        session, bare = start_solo(site, FLOODING), start_solo(site, FLOODING)
        with _typing(browser, served, session) as page, watching(served.url, served.token, bare) as viewer:
            floods, bare_floods = count(1), count(1)
            memory = _Memory(served.pid)
            before = memory.now()
            yield Row("server memory before a flood", before, unit="MiB")
            for rate, how in ((1, ""), (_SLOWER, ", slowed-down browser")):
                page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": rate})
                with memory.watched():
                    took, floor = in_turns(
                        effort.repeats(4),
                        lambda: _flood(page, next(floods), site.session(session, "logs", "agent-00.log")),
                        lambda: flood_watched(viewer, next(bare_floods)),
                    )
                yield Row(f"{MB} MB printed until the page shows the end{how}", took, "a bare WebSocket", floor)
                yield Row(f"… as megabytes a second{how}", MB / took, "a bare WebSocket", MB / floor, unit="MB/s")
                for when, size in (("during", memory.most), ("after", memory.now())):
                    what = f"server memory {when} floods{how}"
                    yield Row(what, size, "before", before, "before + 16 MiB", before + 16, "MiB")
        site.mas("stop", "--all")


def _flood(page: Page, number: int, log: str) -> float:
    begun = time.perf_counter()
    page.keyboard.press("Enter")
    try:
        page.wait_for_function(_SHOWS, arg=f"flood-over {number}.")
    except TimedOut as error:
        # Which of the two it was: the key did not come to the program, or its end not to the page.
        with open(log, "rb") as file:
            file.seek(-_TAIL, os.SEEK_END)
            printed = file.read()
        shown = page.evaluate("document.querySelector('.whole')?.innerText.slice(-500)")
        raise RuntimeError(
            f"flood {number} is not over: the program printed {printed!r}, the page {shown!r}"
        ) from error
    return time.perf_counter() - begun


class _Memory:
    """What a server and its helpers take, in MiB."""

    def __init__(self, pid: int) -> None:
        self._server = psutil.Process(pid)
        self.most = 0.0

    def now(self) -> float:
        family = [self._server, *self._server.children(recursive=True)]
        return sum(_resident(process) for process in family) / _MIB

    @contextmanager
    def watched(self) -> Iterator[None]:
        """`most` is the most that was seen while this lasts."""
        over = threading.Event()
        self.most = self.now()
        watching = threading.Thread(target=self._watch, args=(over,))
        watching.start()
        try:
            yield
        finally:
            over.set()
            watching.join()

    def _watch(self, over: threading.Event) -> None:
        while not over.wait(_LOOK_AGAIN):
            self.most = max(self.most, self.now())


def _resident(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.NoSuchProcess:
        return 0


@contextmanager
def _typing(browser: Browser, served: Served, session: str) -> Iterator[Page]:
    """A session's only agent at full size, live and ready to be typed to."""
    with _signed_in(browser, served) as room:
        room.go("sessions", session, "team", "00")
        room.page.locator(".whole:not(.away) textarea").focus()
        yield room.page


@contextmanager
def _signed_in(browser: Browser, served: Served) -> Iterator[Room]:
    with _new_page(browser) as page:
        room = Room(served, page, "")
        room.sign_in()
        yield room


@contextmanager
def _new_page(browser: Browser) -> Iterator[Page]:
    """A page of a browser that has never seen anything."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(_PATIENCE)
    try:
        yield context.new_page()
    finally:
        context.close()
