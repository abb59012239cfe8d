"""One trial of one policy, and the checks of a policy's pulls.

``trial`` has the class :class:`bandits.Trial`, which a policy plays on, and the protocol
:class:`bandits.Policy`; read it first. ``regret`` sums the pseudo-regret of pulls.
"""
