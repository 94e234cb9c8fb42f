"""Hosts of a Ray cluster as places: ``reserve(address, hosts)``, a context manager.

    with reserve("ray://head:10001", hosts=3) as reserved:
        reserved.places  # a ``Place`` for each host, in no order that means anything

How: an actor on each of so many different hosts (a placement group, STRICT_SPREAD) starts programs
and moves their bytes; nothing is restarted or tried again, ever. When the reservation is closed, or
the front dies, Ray ends the actors, and with them what they started. Ray itself is imported only by
``reserve``. Must not know what is run on the hosts.
"""

from trueload.places.ray.channel import HostLostError, RayPlace
from trueload.places.ray.cluster import Reservation, reserve

__all__ = ["HostLostError", "RayPlace", "Reservation", "reserve"]
