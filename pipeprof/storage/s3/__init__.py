"""S3 and what speaks like it: one store, and a choice of clients that ask for it."""
