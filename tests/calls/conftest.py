from .bench import bench
from .driver import driver, library

__all__ = ["bench", "driver", "library"]
