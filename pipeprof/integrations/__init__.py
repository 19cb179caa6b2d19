"""Connect pipeprof to training frameworks: their loaders, and their names for what is no step.

Each module is for one framework, and imports it; so import only the one that you use. Only the
command line may import this package.
"""
