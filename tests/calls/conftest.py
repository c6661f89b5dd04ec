from .bench import bench

__all__ = ["bench"]
