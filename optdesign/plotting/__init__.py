"""How the pictures of :mod:`optdesign.plot` are made: one file a picture, one for their style.

Nothing here loads matplotlib before a picture is asked for.
"""

from optdesign.plotting.style import SUFFIXES, matplotlib

__all__ = ["SUFFIXES", "matplotlib"]
