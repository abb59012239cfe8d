"""Settings of hypothesis for tests of strategies."""

from hypothesis import Phase, settings

few = settings(max_examples=20)
seen = settings(max_examples=2000, phases=[Phase.generate])
smallest = settings(max_examples=1000, phases=[Phase.generate, Phase.shrink])
"""Phase.explain varies the smallest example once more, and `find` would return the last variation."""
