"""The file store: where uploads, images, exports and the files of pipelines are kept.

A file is named by a key, never by a path on a host, so that every process finds it. There are two
implementations of one contract: a folder, and a bucket of any S3-compatible service.
"""

from holdfast.files.access import FileAccess
from holdfast.files.contract import FileStore
from holdfast.files.folder import FolderStore
from holdfast.files.local import LocalFiles

__all__ = ["FileAccess", "FileStore", "FolderStore", "LocalFiles"]
