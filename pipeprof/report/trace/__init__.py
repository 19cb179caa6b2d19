"""A profile as a Chrome trace, by itself or within one of torch.profiler."""
