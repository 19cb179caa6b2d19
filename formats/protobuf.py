"""Make protobuf's message classes without its compiler."""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format


def message_types(proto: str, *names: str) -> list[Any]:
    """Return the classes of the messages of these names.

    They are in a pool of their own, so that the package which defines them may be loaded as well.

    Args:
        proto: A `FileDescriptorProto` as text.
        names: With their package, such as ``"tensorflow.Example"``.
    """
    pool = descriptor_pool.DescriptorPool()
    pool.Add(text_format.Parse(proto, descriptor_pb2.FileDescriptorProto()))
    return [message_factory.GetMessageClass(pool.FindMessageTypeByName(name)) for name in names]
