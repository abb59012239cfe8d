"""Hypothesis settings for all tests: the same examples in every run, and no deadline (kernels compile)."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "stable",
    deadline=None,
    derandomize=True,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
settings.load_profile("stable")
