"""Read S3 and servers with its protocol: one store, and several clients to choose from."""
