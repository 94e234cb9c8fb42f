"""Pods of a Kubernetes cluster as places, by the user's own ``kubectl``.

`kubectl` runs it and explains its refusals · `pods` what the cluster says of a Pod · `pod_list`
the Pods of a place · `channel` an engine in a Pod, and why it was lost · `manifest` and `job` Pods
that are made for a run · `reserve` all Pods of a place
"""

from trueload.places.k8s.reserve import Reservation, make_manifest, reserve

__all__ = ["Reservation", "make_manifest", "reserve"]
