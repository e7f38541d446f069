"""Routes that keep out: secrets, keys, sessions, the audit, and the pages where people sign in (5.6)."""

from __future__ import annotations

from treadle.server import audit, keys, oidc_pages, pages, secrets, session

ROUTES = (
    *secrets.ROUTES,
    *keys.ROUTES,
    *session.ROUTES,
    *audit.ROUTES,
    *pages.ROUTES,
    *oidc_pages.ROUTES,
)
