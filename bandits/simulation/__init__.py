"""Many trials of a policy: simulation, records of the trials, checkpoints.

``runner`` has the function :func:`bandits.simulate`; read it first. ``run`` has the record of the trials,
``checkpoints`` saves it and resumes from it, ``identity`` and ``sources`` hash the content and the code that
determine a trial, so that a checkpoint of another experiment is not used.
"""
