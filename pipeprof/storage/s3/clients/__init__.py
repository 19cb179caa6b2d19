"""What asks a bucket: one file per library, all with the methods of `base.Client`.

Only `storage.s3.store` uses them.
"""
