// The modules that the library's public interface uses, so that importing it is enough.

@_exported public import Documents
@_exported public import HTTPTypes
