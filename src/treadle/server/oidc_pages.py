"""The two addresses of a sign-in by OpenID Connect: where it begins, and where the provider sends the browser back."""

from __future__ import annotations

from msgspec import Struct

from treadle.runtime.access.fetching import FetchFailed
from treadle.runtime.surroundings.logs import logger
from treadle.server.addresses import own_origin
from treadle.server.call import HttpAnswer, HttpCall
from treadle.server.cookies import FLOW, read_cookie, set_cookie
from treadle.server.oidc import FLOW_S, OidcProvider, SignedInPerson, SignInRefused
from treadle.server.pages import refused_sign_in
from treadle.server.problems import not_found
from treadle.server.routes import OPEN, Route
from treadle.server.sign_in import begin_session, is_navigation, to_first_page

log = logger("treadle.server")


class ProviderAnswer(Struct, kw_only=True):
    """What the provider sends the browser back with."""

    state: str = ""
    code: str = ""
    error: str | None = None
    error_description: str | None = None
    error_uri: str | None = None
    iss: str | None = None
    session_state: str | None = None
    scope: str | None = None


def _provider(call: HttpCall) -> OidcProvider:
    settings = call.service.settings.oidc
    if settings is None:
        raise not_found("provider to sign in with")
    provider: OidcProvider | None = call.service.parts.get("oidc")
    if provider is None:
        provider = call.service.parts["oidc"] = OidcProvider(call.service, settings)
    return provider


def _redirect_uri(call: HttpCall) -> str:
    return own_origin(call.request, call.service.settings) + call.url("/sign-in/oidc/callback")


async def begin(call: HttpCall) -> HttpAnswer:
    provider = _provider(call)
    try:
        address, kept = await provider.begin(_redirect_uri(call))
    except FetchFailed as problem:
        log.warning("the OpenID provider cannot be reached", problem=str(problem))
        return refused_sign_in(call, "oidc", 503)
    cookie = set_cookie(call.request, call.service.settings, kept, FLOW_S, FLOW)
    return HttpAnswer(b"", 303, {"location": address, "set-cookie": cookie}, media_type="text/plain")


async def finish(call: HttpCall) -> HttpAnswer:
    provider = _provider(call)
    settings = call.service.settings
    given: ProviderAnswer = call.query
    cookie = read_cookie(call.request, settings, FLOW)
    try:
        if given.error is not None or not given.code or cookie is None or not is_navigation(call.request):
            raise SignInRefused("the provider has refused, or this browser has not asked")
        if given.iss is not None and settings.oidc is not None and given.iss != settings.oidc.issuer:
            raise SignInRefused("another provider has answered")
        claims = await provider.finish(cookie, given.state, given.code, _redirect_uri(call))
        assert settings.oidc is not None
        person = SignedInPerson(claims, settings.oidc)
    except (SignInRefused, FetchFailed) as problem:
        log.warning("a sign-in was refused", problem=str(problem), request=call.request_id)
        refused = refused_sign_in(call, problem.reason if isinstance(problem, SignInRefused) else "oidc", 401)
        refused.headers["set-cookie"] = set_cookie(call.request, settings, "", 0, FLOW)
        return refused
    session, value = call.service.callers.sessions.draft(
        "oidc", name=person.user, user=person.user, groups=person.groups, roles=person.roles
    )
    return to_first_page(await begin_session(call, session, value, 303))


ROUTES = (
    Route(
        method="GET",
        path="/sign-in/oidc",
        root=True,
        handler=begin,
        access=OPEN,
        about="none",
        noun="session",
        summary="Begin to sign in with the OpenID provider",
        answers={303: None, 503: bytes},
        answer_type="text/html",
        problems=("NOT_FOUND",),
    ),
    Route(
        method="GET",
        path="/sign-in/oidc/callback",
        root=True,
        handler=finish,
        access=OPEN,
        about="none",
        noun="session",
        summary="Where the OpenID provider sends the browser back",
        query=ProviderAnswer,
        answers={303: None, 401: bytes},
        answer_type="text/html",
        problems=("NOT_FOUND",),
    ),
)
