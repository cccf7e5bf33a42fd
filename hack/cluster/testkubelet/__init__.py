"""A kubelet without containers: nodes and pods of a control plane that has no machines.

It registers nodes with any resources, labels and taints. The real scheduler binds pods to them; each pod then becomes
Ready, or meets the fate that its annotations or a rule ask for, in the states and words of a real kubelet (1.37).
Deleted pods end. Secrets and ConfigMaps that a pod needs must really exist.
"""

from hack.cluster.testkubelet.fate import Fate, FateKind
from hack.cluster.testkubelet.node import NodeSpec, Taint
from hack.cluster.testkubelet.thread import KubeletThread

__all__ = ["Fate", "FateKind", "KubeletThread", "NodeSpec", "Taint"]
