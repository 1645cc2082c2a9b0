"""The pages: who asks for what, and what is answered."""

from __future__ import annotations

import hmac
import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, FastAPI, Header, HTTPException, Query, Request, Response
from fastapi import Form as Sent
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException as AnyHTTPException

from s2s_tasks.arena.page.arena import HERE, Arena, open_arena
from s2s_tasks.arena.page.board import Board
from s2s_tasks.arena.page.forms import LONGEST_NOTE, REASONS, Form, Skip, Vote
from s2s_tasks.arena.page.rows import Assignment, Said
from s2s_tasks.arena.page.sounds import respond
from s2s_tasks.arena.page.store import Store
from s2s_tasks.arena.page.votes import Answers
from s2s_tasks.arena.records import CRITERIA, Criterion, Instruction, Winner
from s2s_tasks.audio import AudioError

if TYPE_CHECKING:
    from s2s_tasks.arena.page.counts import Leaderboard

log = logging.getLogger(__name__)

HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; media-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "X-Robots-Tag": "noindex",
}
BOARD_POLICY = "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
"""The report's page has a policy of its own, which cannot say this."""
KEPT = 32
"""Recordings in memory: browsers ask for one part after another."""
CHANGED = "changed"
NOTICES = {
    CHANGED: "Your last battle is saved anew.",
    "twice": "You were done with that battle, perhaps in another tab. What was saved there stands; "
    "you can go back to it.",
    "gone": "That battle is no longer yours: the work was split anew. Please go on with this one.",
}
NO_LINK = "This link is not known. Open the whole link that you were given, or ask for a new one."
UNHEARD = (
    "A recording of this battle was changed or is gone, so that your vote was not saved. Go back, "
    "and skip the battle."
)

router = APIRouter()


def app(
    instructions: Iterable[Instruction],
    answers: Answers,
    store: Store,
    *,
    ties: bool = True,
    leaderboard: Leaderboard | None = None,
) -> FastAPI:
    """Return the application.

    Args:
        instructions: at least those of the battles in the store.
        answers: by system, then by the instruction's id.
        store: holds the battles and who judges them.
        ties: whether "tie" and "both bad" can be voted, on every criterion.
        leaderboard: makes a document of all votes so far; without it the leaderboard's page has
            counts and win rates alone.

    Raises:
        S2STasksError: when a battle in the store is of something that is not given.
    """
    application = FastAPI(openapi_url=None, redirect_slashes=False)
    arena = application.state.arena = open_arena(instructions, answers, store, ties)
    application.state.wav = lru_cache(maxsize=KEPT)(arena.wav)
    application.state.board = Board(store, leaderboard)
    application.include_router(router)
    application.mount("/static", StaticFiles(directory=HERE / "static"))
    application.middleware("http")(_guarded)
    application.add_exception_handler(AnyHTTPException, _refused)
    application.add_exception_handler(RequestValidationError, _misread)
    application.add_exception_handler(Exception, _broken)
    return application


def _arena(request: Request) -> Arena:
    arena: Arena = request.app.state.arena
    return arena


InArena = Annotated[Arena, Depends(_arena)]


def _annotator(token: str, arena: InArena) -> str:
    if name := arena.store.annotator(token):
        return name
    raise HTTPException(404, NO_LINK)


Annotator = Annotated[str, Depends(_annotator)]


@router.get("/")
def _welcome(arena: InArena) -> HTMLResponse:
    return arena.page("message", title="Listen and vote", text="Open the link that you were given.")


@router.get("/vote/{token}")
def _show(
    token: str, name: Annotator, arena: InArena, notice: Annotated[str, Query()] = ""
) -> HTMLResponse:
    assignment = arena.store.next(name)
    if assignment is None:
        progress = arena.store.progress(name)
        return arena.page(
            "goodbye",
            calm=notice == CHANGED,
            name=name,
            notice=NOTICES.get(notice, ""),
            progress=progress,
            token=token,
        )
    return _battle(token, name, arena, assignment, notice=notice)


@router.get("/back/{token}")
def _back(token: str, name: Annotator, arena: InArena) -> Response:
    said = arena.store.last(name)
    return _battle(token, name, arena, said.assignment, said) if said else _onward(token)


def _battle(
    token: str,
    name: str,
    arena: Arena,
    assignment: Assignment,
    said: Said | None = None,
    notice: str = "",
) -> HTMLResponse:
    return arena.page(
        "vote",
        assignment=assignment,
        calm=notice == CHANGED,
        choices=arena.choices,
        criteria=CRITERIA,
        instruction=arena.instruction(assignment),
        longest_note=LONGEST_NOTE,
        notice=NOTICES.get(notice, ""),
        progress=arena.store.progress(name),
        reasons=REASONS,
        said=said,
        sent=json.loads(said.reply) if said else {},
        signature=arena.store.signature(token, assignment.id),
        token=token,
    )


@router.post("/vote/{token}")
def _vote(token: str, name: Annotator, arena: InArena, vote: Annotated[Vote, Sent()]) -> Response:
    if refused := sorted(set(vote.winners.values()) - arena.choices.keys()):
        raise HTTPException(422, f"Here one answer has to win: {refused[0]} cannot be voted.")
    return _keep(token, name, arena, vote, winners=vote.winners)


@router.post("/skip/{token}")
def _skip(token: str, name: Annotator, arena: InArena, skip: Annotated[Skip, Sent()]) -> Response:
    return _keep(token, name, arena, skip, skipped=skip.reason)


def _keep(
    token: str,
    name: str,
    arena: Arena,
    form: Vote | Skip,
    winners: Mapping[Criterion, Winner] | None = None,
    skipped: str | None = None,
) -> Response:
    assignment = _signed(token, name, arena, form)
    if assignment is None:
        return _onward(token, "gone")
    if winners and not arena.can_be_heard(assignment):
        raise HTTPException(409, UNHEARD)
    kept = arena.store.record(
        assignment.id,
        form.reply(),
        arena.prompt_sha256(assignment),
        winners,
        skipped,
        revision=form.revision,
    )
    return _onward(token, "twice" if not kept else CHANGED if form.revision else "")


def _signed(token: str, name: str, arena: Arena, form: Form) -> Assignment | None:
    expected = arena.store.signature(token, form.assignment)
    if not hmac.compare_digest(expected.encode(), form.signature.encode()):
        raise HTTPException(403, "This form was not made by this page. Go back, and vote there.")
    return arena.store.assignment(name, form.assignment)


def _onward(token: str, notice: str = "") -> Response:
    return RedirectResponse(f"/vote/{token}" + (f"?notice={notice}" if notice else ""), 303)


@router.api_route("/sound/{id}", methods=["GET", "HEAD"])
def _sound(
    id: str, request: Request, arena: InArena, asked: Annotated[str, Header(alias="range")] = ""
) -> Response:
    # Only an id that the store made leads to a recording.
    sound = arena.store.sound(id)
    if sound is None:
        raise HTTPException(404, "There is no such recording.")
    try:
        data: bytes = request.app.state.wav(sound, id)
    except AudioError as error:
        log.error("a recording cannot be served: %s", error)
        # The error names a file, which may name a system.
        raise HTTPException(
            500, "This recording cannot be read; skip the battle, and say so."
        ) from error
    return respond(data, asked)


@router.get("/leaderboard/{token}")
def _to_board(token: str) -> Response:
    return RedirectResponse(f"/leaderboard/{token}/")  # where the names of its files resolve


@router.get("/leaderboard/{token}/")
@router.get("/leaderboard/{token}/{name}")
def _board(token: str, request: Request, arena: InArena, name: str = "report.html") -> FileResponse:
    if not arena.store.opens_leaderboard(token):
        raise HTTPException(404, NO_LINK)
    board: Board = request.app.state.board
    path = board.files().get(name)
    if path is None:
        raise HTTPException(404, "The leaderboard has no such file.")
    return FileResponse(path, headers={"Content-Security-Policy": BOARD_POLICY})


# Whatever is answered


async def _guarded(
    request: Request, call_next: Callable[[Request], Awaitable[Response]]
) -> Response:
    response = await call_next(request)
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    return response


def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, AnyHTTPException)
    own = isinstance(error, HTTPException)
    text = str(error.detail) if own else "There is nothing here. Open the link that you were given."
    return _arena(request).page("message", error.status_code, title="That did not work", text=text)


def _misread(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    fields = sorted({str(problem["loc"][-1]) for problem in error.errors()})
    text = f"The form is not complete: {', '.join(fields)}. Go back, and choose on every criterion."
    return _arena(request).page("message", 422, title="That did not work", text=text)


def _broken(request: Request, _error: Exception) -> Response:
    text = (
        "Something broke, and nothing was saved. Please load the page again; if it stays, say so."
    )
    response = _arena(request).page("message", 500, title="That did not work", text=text)
    response.headers.update(HEADERS)  # no middleware is asked any more
    return response
