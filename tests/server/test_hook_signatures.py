"""Signatures of deliveries over HTTP: the right one is taken, every other refused and written down."""

from __future__ import annotations

import time

import pytest

from tests.server.client import Connected
from tests.server.hooked import BODY, SCHEMES, Hooked


@pytest.mark.parametrize("source", SCHEMES)
def test_a_signed_delivery_starts_a_run_and_any_other_signature_does_not(connected: Connected, source: str) -> None:
    sign, secret = SCHEMES[source]
    hooked = Hooked(connected, f"signed-{source}", source=source, secret=secret)
    reply = hooked.deliver(headers=sign(BODY))
    assert reply.status == 202, reply
    assert set(reply.json) == {"delivery", "run"}
    other = b'{"id": 8}'
    wrong = [
        {},
        dict.fromkeys(sign(BODY), ""),
        {name: value.replace("=", "=0", 1) for name, value in sign(BODY).items()},
        sign(other),  # the signature of another delivery
        {name: value[:-1] for name, value in sign(BODY).items()},
    ]
    if source in ("standard", "stripe", "slack"):
        wrong += [sign(BODY, time.time() - 310), sign(BODY, time.time() + 310)]
    for headers in wrong:
        refused = hooked.deliver(headers=headers)
        assert (refused.status, refused.json["code"]) == (401, "UNAUTHENTICATED"), headers
    assert len(hooked.deliveries()) == 1 + len(wrong), "each was written down"
    assert [one["outcome"]["result"] for one in hooked.deliveries()] == ["signature"] * len(wrong) + ["started"]


@pytest.mark.parametrize("source", ["standard", "stripe", "slack"])
def test_no_time_a_sender_can_write_makes_an_old_signature_fresh(connected_sqlite: Connected, source: str) -> None:
    sign, secret = SCHEMES[source]
    hooked = Hooked(connected_sqlite, f"stale-{source}", source=source, secret=secret)
    old, now = sign(BODY, time.time() - 3_600), sign(BODY)
    stamps = {"standard": "webhook-timestamp", "slack": "X-Slack-Request-Timestamp"}
    forged: list[dict[str, str]] = []
    if source == "stripe":
        stamp, _, rest = old["Stripe-Signature"].partition(",")
        fresh = now["Stripe-Signature"].partition(",")[0]
        forged += [{"Stripe-Signature": text} for text in (f"{fresh},{rest}", f"{stamp},{fresh},{rest}", rest)]
        forged += [{"Stripe-Signature": f"{fresh},{stamp},{rest}"}, {"Stripe-Signature": f"t=,{rest}"}]
    else:
        name = stamps[source]
        odd = (
            "",
            "0",
            "-1",
            "9" * 11,
            "9" * 12,
            "9" * 400,
            "١٢٣",
            "1e9",
            " ",
            "nan",
            now[name] + ".5",
            "+" + now[name],
        )
        forged += [{**old, name: now[name]}, *({**now, name: text.encode().decode("latin-1")} for text in odd)]
    for headers in forged:
        refused = hooked.deliver(headers=headers)
        assert (refused.status, refused.json["code"]) == (401, "UNAUTHENTICATED"), headers
    assert hooked.deliver(headers=now).status == 202


def test_parts_of_two_right_signatures_do_not_make_a_third(connected_sqlite: Connected) -> None:
    sign, secret = SCHEMES["standard"]
    hooked = Hooked(connected_sqlite, "reordered", source="standard", secret=secret)
    one, other = sign(BODY), sign(b'{"id": 8}')
    signed_twice = f"{one['webhook-signature']} {other['webhook-signature']}"
    for headers in (
        {**one, "webhook-id": "msg_2"},
        {**one, "webhook-signature": other["webhook-signature"]},
        {**one, "webhook-signature": one["webhook-signature"].replace("v1,", "v1a,")},
        {**one, "webhook-signature": one["webhook-signature"].replace("v1,", "")},
        {**one, "webhook-signature": one["webhook-signature"].replace(" ", ",")},
        {**one, "webhook-id": ""},
    ):
        assert hooked.deliver(headers=headers).status == 401, headers
    assert hooked.deliver(headers={**one, "webhook-signature": signed_twice}).status == 202, "a secret may be rotated"


def test_a_delivery_that_is_played_again_starts_no_second_run_if_the_hook_has_a_key(
    connected_sqlite: Connected,
) -> None:
    sign, secret = SCHEMES["standard"]
    rule = {"key": "$.headers.webhook-id"}
    hooked = Hooked(connected_sqlite, "played-again", source="standard", secret=secret, **rule)
    headers = sign(BODY)
    first, *again = [hooked.deliver(headers=headers) for _ in range(4)]
    assert first.status == 202
    assert {(reply.status, reply.json["run"]) for reply in again} == {(200, first.json["run"])}
    assert hooked.runs() == 1
