"""Hosts of a Ray cluster as places: ``reserve(address, hosts)``, a context manager.

    with reserve("ray://head:10001", hosts=3) as reserved:
        reserved.places  # a ``Place`` for each host, by name

How: a placement group (STRICT_SPREAD) puts an actor on each of the different hosts. The actors
start programs and move their bytes. Nothing is ever restarted or tried again. When the reservation
is closed, or the front dies, Ray ends the actors, and with them what they started. Ray itself is
imported only by ``reserve``.
"""

from trueload.places.ray.channel import RayPlace
from trueload.places.ray.cluster import Reservation, reserve

__all__ = ["RayPlace", "Reservation", "reserve"]
