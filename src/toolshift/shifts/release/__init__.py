"""The coming change: two tool lists become a shift that is exactly their difference.

sides.py     where a tool list comes from: a file, a live server
match.py     which tool became which: names first, then likeness
mapping.py   the answers to what likeness cannot say, as a file
routes.py    how a call of a new tool is carried by an old one
release.py   the change of a scene
file.py      the shift as a file, and how names find it again
"""
