"""Quotas of S3, Amazon's where nothing else is said."""

from typing import Final

_MIB: Final = 1024 * 1024

KEY_BYTES_MAX: Final = 1024
METADATA_BYTES_MAX: Final = 2048
#: Of one request: the bodies that the HTTP front takes.
CONTENT_BYTES_MAX: Final = 16 * _MIB
#: Of one answer, which is held in memory; Amazon has no such bound. Clients read larger objects in ranges.
ANSWER_BYTES_MAX: Final = 64 * _MIB
PART_BYTES_MIN: Final = 5 * _MIB
PARTS_MAX: Final = 10_000
OBJECT_BYTES_MAX: Final = 5 * 1024**4
COPY_BYTES_MAX: Final = 5 * 1024**3
LISTED_MAX: Final = 1000
DELETED_AT_ONCE_MAX: Final = 1000
BUCKETS_MAX: Final = 10_000
