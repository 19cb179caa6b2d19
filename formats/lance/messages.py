"""The protobuf messages of Lance that say where the data lies. Fields that nobody here needs are
left out."""

from __future__ import annotations

from typing import Any

from google.protobuf import message

from pipeprof.errors import CorruptData
from pipeprof.formats.protobuf import message_types

_PROTO = """
name: "pipeprof/lance.proto" package: "lance" syntax: "proto3"
message_type { name: "Page"
  field { name: "buffer_offsets" number: 1 type: TYPE_UINT64 label: LABEL_REPEATED }
  field { name: "buffer_sizes" number: 2 type: TYPE_UINT64 label: LABEL_REPEATED }
  field { name: "length" number: 3 type: TYPE_UINT64 }
  field { name: "priority" number: 5 type: TYPE_UINT64 } }
message_type { name: "Column"
  field { name: "pages" number: 2 type_name: ".lance.Page" label: LABEL_REPEATED }
  field { name: "buffer_offsets" number: 3 type: TYPE_UINT64 label: LABEL_REPEATED }
  field { name: "buffer_sizes" number: 4 type: TYPE_UINT64 label: LABEL_REPEATED } }
message_type { name: "Field"
  field { name: "name" number: 2 type: TYPE_STRING }
  field { name: "id" number: 3 type: TYPE_INT32 }
  field { name: "parent_id" number: 4 type: TYPE_INT32 }
  field { name: "logical_type" number: 5 type: TYPE_STRING }
  field { name: "nullable" number: 6 type: TYPE_BOOL } }
message_type { name: "Schema"
  field { name: "fields" number: 1 type_name: ".lance.Field" label: LABEL_REPEATED } }
message_type { name: "FileDescriptor"
  field { name: "schema" number: 1 type_name: ".lance.Schema" }
  field { name: "length" number: 2 type: TYPE_UINT64 } }
message_type { name: "DataFile"
  field { name: "path" number: 1 type: TYPE_STRING }
  field { name: "base_id" number: 7 type: TYPE_UINT32 label: LABEL_OPTIONAL
    proto3_optional: true oneof_index: 0 }
  oneof_decl { name: "_base_id" } }
message_type { name: "DeletionFile"
  field { name: "id" number: 3 type: TYPE_UINT64 } }
message_type { name: "Fragment"
  field { name: "files" number: 2 type_name: ".lance.DataFile" label: LABEL_REPEATED }
  field { name: "deletion_file" number: 3 type_name: ".lance.DeletionFile" } }
message_type { name: "Manifest"
  field { name: "fields" number: 1 type_name: ".lance.Field" label: LABEL_REPEATED }
  field { name: "fragments" number: 2 type_name: ".lance.Fragment" label: LABEL_REPEATED } }
"""
# Source: protos/file.proto, file2.proto and table.proto of github.com/lance-format/lance

Column, FileDescriptor, Manifest = message_types(
    _PROTO, "lance.Column", "lance.FileDescriptor", "lance.Manifest"
)


def parse(kind: Any, data: bytes, what: str) -> Any:
    """Return the message of a ``kind``. Raises `CorruptData`, which names it as ``what``."""
    try:
        return kind.FromString(data)
    except (message.DecodeError, RecursionError) as error:
        raise CorruptData(f"{what} cannot be read ({error}).") from None
