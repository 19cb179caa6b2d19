"""The clients of S3: one module per library, each with a class that implements `base.Client`.

Only `storage.s3.store` uses them.
"""
