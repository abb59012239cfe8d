"""Problems, designs and whole runs in files, restored to the last bit.

A file is checked in three ways: a checksum shows damage, building the problem anew applies all its rules, and
the claims are computed again and compared with those in the file. ``files`` writes and reads, ``content``
converts objects, and ``values`` arrays and labels. Read ``content`` first.
"""
