"""Pure arithmetic about accelerators, storage and clusters."""
