"""Probe one storage from many hosts at once: how its rates grow with the hosts that read.

A team has a leader, and members that carry out its orders. The launcher of a job brings them
together (`store_team`), or Ray does (`ray_team`). Only `pipeprof.cli` may import this room.
"""
