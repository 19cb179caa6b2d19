"""Run a command with the address of a Ray cluster of NODES nodes on this machine at its end:
``ray_cluster.py NODES COMMAND…``."""

from __future__ import annotations

import subprocess
import sys

from ray.cluster_utils import Cluster

if __name__ == "__main__":
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        for _ in range(int(sys.argv[1]) - 1):
            cluster.add_node(num_cpus=1)
        done = subprocess.run([*sys.argv[2:], cluster.address], check=False)
    finally:
        cluster.shutdown()
    sys.exit(done.returncode)
