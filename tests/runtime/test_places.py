"""Where a store is: every way to write it, and none in which it shows what is secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from treadle.errors import StorePlaceError
from treadle.store.places import StoreLocation, place_of

SECRET = "s3cr3t"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"postgresql://ada:{SECRET}@db.example/shop", "postgresql://db.example/shop"),
        (f"postgres://ada:{SECRET}@db.example:5433/shop", "postgresql://db.example:5433/shop"),
        (f"postgresql://db.example/shop?user=ada&password={SECRET}", "postgresql://db.example/shop"),
        (f"postgresql:///shop?host=/run/postgresql&password={SECRET}", "postgresql:///run/postgresql/shop"),
        (f"postgresql://{SECRET}@localhost/shop", "postgresql://localhost/shop"),
        (
            f"postgresql://ada:{SECRET}@db.example/shop?search_path=billing&application_name={SECRET}",
            "postgresql://db.example/shop?search_path=billing",
        ),
        (f"postgresql://ada:{SECRET}@red:5432,blue:5433/shop", "postgresql://red:5432,blue:5433/shop"),
        (f"postgresql://ada:{SECRET}@red,blue:5433/shop", "postgresql://red,blue:5433/shop"),
        (f"postgresql://{SECRET}@[::1]:5432,[::2],red/shop", "postgresql://[::1]:5432,[::2],red/shop"),
        ("postgresql:///shop?host=red,blue&port=5432,5433", "postgresql://red:5432,blue:5433/shop"),
        ("postgresql:///shop?host=red,blue&port=5433", "postgresql://red:5433,blue:5433/shop"),
        ("postgresql://%2Frun%2Fpostgresql/shop", "postgresql:///run/postgresql/shop"),
        ("postgresql://red:,:5433/shop", "postgresql://red,localhost:5433/shop"),
    ],
)
def test_an_address_is_shown_without_user_password_and_options(text: str, shown: str) -> None:
    place = StoreLocation(text)
    assert (place.dsn, place.path, place.is_missing) == (text, None, False)
    assert str(place) == shown
    assert SECRET not in f"{place} {place!r}"


@pytest.mark.parametrize(
    "text",
    [
        f"postgresql://ada:{SECRET}/x@db.example/shop",
        f"postgresql://ada:{SECRET}@[::1/shop",
        f"postgresql://ada:{SECRET}@x@db.example/shop",
        f"postgresql://ada@red:{SECRET},blue/shop",
        f"postgresql:///shop?host=red,blue,green&port=1,2&password={SECRET}",
        f"postgresql://ada:{SECRET}@red:65536/shop",
    ],
)
def test_an_address_that_cannot_be_read_is_refused_without_quoting_it(text: str) -> None:
    with pytest.raises(StorePlaceError, match="percent-encoded") as refused:
        StoreLocation(text)
    assert SECRET not in str(refused.value)
    assert refused.value.__cause__ is None


def test_a_file_and_memory_are_places_too(tmp_path: Path) -> None:
    file = tmp_path / "t.db"
    assert (StoreLocation(file).path, StoreLocation(file).dsn, StoreLocation(file).is_missing) == (file, None, True)
    file.touch()
    assert not StoreLocation(str(file)).is_missing
    memory = StoreLocation(":memory:")
    assert (memory.path, memory.dsn, memory.is_missing) == (None, None, False)
    assert place_of(memory) is memory
    assert StoreLocation(file) == place_of(str(file))
    assert StoreLocation(file) != memory
