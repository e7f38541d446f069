"""The gate: hostile spellings of addresses, allow lists, names that lead inside, names that change their mind."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any

import pytest

from tests.outside.peers import FakeResolver, answering, ask, error, output, peer, run
from treadle.actions.client import GatedClient
from treadle.actions.net import AddressGate, AddressRefused, NetPolicy, is_public, literal, unwrapped


def words(text: str) -> list[str]:
    return text.split()


DENIED_ADDRESSES = words("""
0.0.0.0 0.0.0.1 0.255.255.255 10.0.0.1 10.255.255.255 100.64.0.1 100.100.100.200 127.0.0.1 127.1.2.3 127.255.255.255
169.254.0.1 169.254.169.254 169.254.170.2 172.16.0.1 172.31.255.255 192.0.0.1 192.0.0.192 192.0.2.1 192.168.0.1
192.88.99.1 198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.7 224.0.0.1 239.255.255.250 240.0.0.1 255.255.255.255
168.63.129.16 :: ::1 fe80::1 fec0::1 fc00::1 fd00:ec2::254 fd12:3456::1 ff02::1 ff05::1:3 100::1 2001:db8::1 2001::1
2001:10::1 2002:7f00:1:: 2002:a9fe:a9fe:: 2002:c0a8:1:: 3fff::1 5f00::1 64:ff9b::7f00:1 64:ff9b::a9fe:a9fe
64:ff9b:1::1 ::ffff:127.0.0.1 ::ffff:7f00:1 ::ffff:169.254.169.254 ::ffff:a9fe:a9fe ::ffff:10.0.0.1 ::ffff:0.0.0.0
::127.0.0.1 ::a9fe:a9fe ::ffff:0:127.0.0.1 0:0:0:0:0:ffff:c0a8:1 4000::1
""")
PUBLIC_ADDRESSES = words(
    "1.1.1.1 8.8.8.8 93.184.216.34 172.32.0.1 100.128.0.1 2606:4700::1111 ::ffff:8.8.8.8 2002:808:808::"
)

ODD_HOSTS = words("""
2130706433 017700000001 0x7f000001 0x7F000001 127.1 127.0.1 0177.0.0.1 0x7f.0.0.1 0x7f.1 127.0.0.01 127.0.0.1.
2852039166 0xa9fea9fe 0251.0376.0251.0376 169.254.43518 0xA9.0xFE.0xA9.0xFE 0 0x0 00 1 010.0.0.1 3232235521
0xc0a80001 192.168.1 192.168.257 4294967295 0x 127.0.0.0x1 1.2.3.4.5 999.1.1.1 256.256.256.256 08.8.8.8
example.0x7f a.b.1 ①②⑦.⓪.⓪.① １２７.0.0.1 127。0。0。1 [fe80::1%25eth0] [::1%25lo]
""")
ODD_URLS = [
    "file:///etc/passwd",
    "gopher://127.0.0.1:6379/_INFO",
    "ftp://example.com/",
    "dict://127.0.0.1:11211/",
    "unix:///var/run/docker.sock",
    "data:text/plain,hi",
    "javascript:alert(1)",
    "//example.com/",
    "example.com",
    "http:///nowhere",
    "http://",
    "https://",
    "",
    "   ",
    "http://example.com:0/",
    "http://example.com:99999/",
    "http://example.com:port/",
    "http://user@example.com/",
    "http://user:pass" + "@example.com/",
    "http://@example.com/",
    "http://:@example.com/",
    "http://example.com@127.0.0.1/",
    "http://127.0.0.1@example.com/",
    "http://example.com#@127.0.0.1/@",
    "http://127.0.0.1\\@example.com/",
    "http://[::1",
    "http://[127.0.0.1]/",
    "http://exa mple.com/",
    "http://127.0.0.1\t.example.com\n/",
]
ALLOWED_ODDLY = {"http://example.com#@127.0.0.1/@"}
"""Looks wrong and is not: everything after # is a fragment, the host is example.com."""


def refusal(url: str, *allow: str) -> str:
    with pytest.raises(AddressRefused) as problem:
        AddressGate(NetPolicy(allow=allow)).check_url(url)
    return str(problem.value)


@pytest.mark.parametrize("address", DENIED_ADDRESSES)
@pytest.mark.parametrize("form", ["http://{}/", "https://{}:8443/x", "HTTP://{}:80"])
def test_an_address_that_is_not_public_is_refused(address: str, form: str) -> None:
    assert "not a public address" in refusal(form.format(f"[{address}]" if ":" in address else address))


@pytest.mark.parametrize("address", PUBLIC_ADDRESSES)
def test_a_public_address_passes(address: str) -> None:
    assert AddressGate(NetPolicy()).check_url(f"https://{f'[{address}]' if ':' in address else address}/")


@pytest.mark.parametrize("host", ODD_HOSTS)
@pytest.mark.parametrize("form", ["http://{}/", "https://{}:8443/x"])
def test_an_unusual_spelling_of_an_address_is_refused(host: str, form: str) -> None:
    refusal(form.format(host))


@pytest.mark.parametrize("url", [url for url in ODD_URLS if url not in ALLOWED_ODDLY])
def test_what_is_no_plain_web_address_is_refused(url: str) -> None:
    refusal(url)


def test_what_is_public_behind_a_strange_look_is_judged_by_its_real_host() -> None:
    for url in ALLOWED_ODDLY:
        assert AddressGate(NetPolicy()).check_url(url).host == "example.com"


@pytest.mark.parametrize(
    ("allow", "url", "passes"),
    [
        ("127.0.0.1:*", "http://127.0.0.1:1234/", True),
        ("127.0.0.1", "http://127.0.0.1:1234/", True),
        ("127.0.0.1:80", "http://127.0.0.1/", True),
        ("127.0.0.1:80", "http://127.0.0.1:81/", False),
        ("127.0.0.1:80", "https://127.0.0.1/", False),
        ("127.0.0.1:*", "http://127.0.0.2/", False),
        ("127.0.0.1:*", "http://[::ffff:127.0.0.1]/", True),
        ("10.0.0.0/8", "http://10.9.8.7/", True),
        ("10.0.0.0/8", "http://11.9.8.7/", True),
        ("10.0.0.0/8:443", "http://10.9.8.7/", False),
        ("10.0.0.0/8:443", "https://10.9.8.7/", True),
        ("[::1]:8080", "http://[::1]:8080/", True),
        ("[::1]:8080", "http://[::1]:8081/", False),
        ("::1", "http://[::1]/", True),
        ("fd00::/8", "http://[fd00:ec2::254]/", True),
        ("127.0.0.1:*", "http://2130706433/", False),
    ],
)
def test_the_operator_opens_addresses_networks_and_ports(allow: str, url: str, passes: bool) -> None:
    if passes:
        AddressGate(NetPolicy(allow=(allow,))).check_url(url)
    else:
        refusal(url, allow)


@pytest.mark.parametrize(
    "entry", ["", ":80", "http://x", "a b", "10.0.0.0/99", "*", "x:http", "127.1", "*.*.x", "user@x"]
)
def test_a_bad_entry_of_the_allow_list_is_refused_when_the_policy_is_made(entry: str) -> None:
    with pytest.raises(ValueError, match="write"):
        NetPolicy(allow=(entry,))


@pytest.mark.parametrize(
    ("host", "addresses", "allow", "passes"),
    [
        ("example.com", ["93.184.216.34"], (), True),
        ("example.com", ["93.184.216.34", "10.0.0.1"], (), False),
        ("example.com", ["10.0.0.1", "93.184.216.34"], (), False),
        ("localhost", ["127.0.0.1"], (), False),
        ("localhost.", ["127.0.0.1"], (), False),
        ("127.0.0.1.nip.example", ["127.0.0.1"], (), False),
        ("v6.example", ["::ffff:169.254.169.254"], (), False),
        ("db.internal", ["10.0.0.5"], ("*.internal:443",), True),
        ("a.b.internal", ["10.0.0.5"], ("*.internal:443",), True),
        ("DB.Internal.", ["fd12::5"], ("*.internal:443",), True),
        ("internal", ["10.0.0.5"], ("*.internal:443",), False),
        ("evilinternal", ["10.0.0.5"], ("*.internal:443",), False),
        ("x.internal.evil.example", ["10.0.0.5"], ("*.internal:443",), False),
        ("db.internal", ["10.0.0.5"], ("*.internal:80",), False),
        ("db.internal", ["169.254.169.254"], ("*.internal",), False),
        ("db.internal", ["fd00:ec2::254"], ("*.internal",), False),
        ("db.internal", ["0.0.0.0"], ("*.internal",), False),
        ("db.internal", ["224.0.0.1"], ("*.internal",), False),
        ("db.internal", ["10.0.0.5", "169.254.169.254"], ("*.internal",), False),
        ("other.example", ["10.0.0.5"], ("10.0.0.0/8",), True),
        ("odd.example", ["fe80::1%eth0"], (), False),
    ],
)
def test_a_name_is_judged_by_all_its_addresses(
    host: str, addresses: list[str], allow: tuple[str, ...], passes: bool
) -> None:
    gate = AddressGate(NetPolicy(allow=allow))
    if passes:
        gate.check_resolved(host, 443, addresses)
    else:
        with pytest.raises(AddressRefused):
            gate.check_resolved(host, 443, addresses)


def test_addresses_are_judged_after_unwrapping() -> None:
    assert unwrapped(ip_address("::ffff:10.0.0.1")) == ip_address("10.0.0.1")
    assert unwrapped(ip_address("64:ff9b::a9fe:a9fe")) == ip_address("169.254.169.254")
    assert unwrapped(ip_address("2002:7f00:1::")) == ip_address("127.0.0.1")
    assert is_public(ip_address("8.8.8.8"))
    assert literal("fe80::1%eth0") is None


def test_a_name_that_leads_inside_reaches_nobody() -> None:
    async def whole() -> Any:
        async with peer(answering()) as server:
            resolver = FakeResolver({"rebind.example": [["127.0.0.1"]]})
            reply = await ask({"url": f"http://rebind.example:{server.port}/"}, policy=NetPolicy(), resolver=resolver)
            return reply, server

    reply, server = run(whole())
    problem = error(reply)
    assert not problem.retryable
    assert "'rebind.example' resolves to 127.0.0.1" in problem.message
    assert server.seen == []


def test_a_name_that_changes_its_mind_is_connected_to_at_the_address_that_was_judged() -> None:
    """The attack: public when it is checked, loopback when it is connected to. Here is only one look-up."""

    async def whole() -> Any:
        async with peer(answering()) as server:
            resolver = FakeResolver({"rebind.example": [["127.0.0.1"], ["169.254.169.254"]]})
            client = GatedClient(NetPolicy(allow=("127.0.0.1:*",)), resolver)
            url = f"http://rebind.example:{server.port}/"
            try:
                async with client.session().get(client.gate.check_url(url), headers={"Connection": "close"}) as first:
                    assert (first.status, resolver.asked) == (200, ["rebind.example"])
                with pytest.raises(AddressRefused, match=r"resolves to 169\.254\.169\.254"):
                    await client.session().get(url)
                assert resolver.asked == ["rebind.example"] * 2
            finally:
                await client.close()
            return server

    assert len(run(whole()).seen) == 1


def test_the_session_itself_refuses_what_nobody_checked_before() -> None:
    """The second line: whoever forgets `check_url` still does not get inside."""

    async def whole() -> Any:
        async with peer(answering()) as server:
            client = GatedClient(NetPolicy())
            try:
                with pytest.raises(Exception, match="not a public address"):
                    await client.session().get(server.url)
            finally:
                await client.close()
            return server

    assert run(whole()).seen == []


def test_a_name_the_operator_lists_may_lead_inside() -> None:
    async def whole() -> Any:
        async with peer(answering()) as server:
            resolver = FakeResolver({"db.internal": [["127.0.0.1"]]})
            return await ask(
                {"url": f"http://db.internal:{server.port}/"},
                policy=NetPolicy(allow=("*.internal",)),
                resolver=resolver,
            )

    assert output(run(whole()))["status"] == 200


def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")

    async def whole() -> Any:
        async with peer(answering()) as server:
            return await ask({"url": server.url})

    assert output(run(whole()))["status"] == 200


def test_a_name_nobody_knows_is_a_retryable_failure() -> None:
    assert error(run(ask({"url": "http://gone.example/"}, resolver=FakeResolver({})))).retryable


@pytest.mark.parametrize(
    ("url", "entry"), [("http://127.0.0.1:8080/x", "127.0.0.1:8080"), ("https://[::1]/", "[::1]:443")]
)
def test_a_refusal_names_the_setting_and_the_entry_that_would_allow_it(url: str, entry: str) -> None:
    with pytest.raises(AddressRefused) as refused:
        AddressGate(NetPolicy()).check_url(url)
    assert f'`net.allow`, `allow = ["{entry}"]` under [net] of treadle.toml' in str(refused.value)
    assert AddressGate(NetPolicy(allow=(entry,))).check_url(url).host
