"""Many trials of a policy: simulation, records of the trials, checkpoints.

``runner`` has the function :func:`bandits.simulate`; read it first. ``run`` has the record of the trials,
and ``checkpoints`` saves it and resumes from it. ``fingerprints`` identifies the experiment of a run by
hashes of content (``identity``) and of code (``sources``), so that a checkpoint of another experiment is not
used.
"""
