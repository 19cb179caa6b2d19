"""Reports: each renders a saved profile or sweep, and nothing else."""
