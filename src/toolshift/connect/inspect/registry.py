"""What Inspect finds by the entry point: tasks, solvers, the scorer and the scripted models."""

from toolshift.connect.inspect.scene_tools import SceneTools
from toolshift.connect.inspect.scoring import graded, shift_drop
from toolshift.connect.inspect.scripted import Scripted
from toolshift.connect.inspect.solvers import converse, react_to
from toolshift.connect.inspect.tasks import paper, quick, shifted, standard

__all__ = [
    "SceneTools",
    "Scripted",
    "converse",
    "graded",
    "paper",
    "quick",
    "react_to",
    "shift_drop",
    "shifted",
    "standard",
]
