"""Settings every suite shares. Warnings are errors: pyproject.toml says so, once, for everybody."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# No deadline: a loaded machine is not a bug. Fresh examples every time, in CI too: a property that holds
# only for one seed does not hold. A failure prints the blob that reproduces it.
settings.register_profile(
    "treadle",
    deadline=None,
    derandomize=False,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("treadle")
