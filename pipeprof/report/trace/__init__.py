"""Write a profile as a Chrome trace, alone or merged into one of torch.profiler."""
