"""Solvers: from a problem to a certified optimal design. Read :mod:`.solve` first.

- :mod:`.solve` is the public entry; :mod:`.loop` runs a method, enforces limits and certifies the weights.
- :mod:`.method` defines the protocol of a method. :mod:`.bca` (block coordinate ascent) and :mod:`.newton`
  (interior point) are the two that do arithmetic. :mod:`.working_set` runs both on a few candidates at a
  time. :mod:`.auto` chooses between them by the times that :mod:`.costs` estimates.
- :mod:`.start` computes initial weights; :mod:`.tidy` removes negligible weights from the result.
- :mod:`.group_step` has the water-filling and exchange steps of block coordinate ascent,
  :mod:`.newton_kernels` the arithmetic of a Newton step, :mod:`.systems` the linear systems.
- :mod:`.sweeps` is Algorithm 3 of the paper, counted sweep by sweep; :mod:`.classical` has the names
  ``d_optimal`` and ``g_optimal``.
"""
