"""regret_bound refuses policies whose intervals or pulls are not those of the theorems."""

import pytest

import bandits


@pytest.mark.parametrize("kind", [bandits.FedPE, bandits.EnhancedFedPE])
def test_policies_outside_the_theorems_have_no_bound(kind):
    plain = bandits.environments.authors(3, 3, 2)
    env = bandits.LinearEnvironment(plain.features, plain.parameters, scale=0.5)
    assert bandits.theory.regret_bound(kind(ell=env.ell / 2, sigma=1.0), env, 1000) > 0.0
    with pytest.raises(ValueError, match="rounding"):
        bandits.theory.regret_bound(kind(rounding=bandits.efficient), env, 1000)
    with pytest.raises(ValueError, match="ell must be at most"):
        bandits.theory.regret_bound(kind(ell=2 * env.ell), env, 1000)
    with pytest.raises(ValueError, match="sigma at least"):
        bandits.theory.regret_bound(kind(sigma=0.4), env, 1000)
