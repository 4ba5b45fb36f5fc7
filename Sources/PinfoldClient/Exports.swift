// What the library's own types are made of: whoever imports it can name these, too.

@_exported public import Documents
@_exported public import EventStreams
@_exported public import HTTPTypes
@_exported public import Retries
@_exported public import Serialization
