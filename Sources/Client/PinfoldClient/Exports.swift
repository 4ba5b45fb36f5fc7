// The modules that the library's public interface uses, so that importing it is enough.

@_exported public import Documents
@_exported public import HTTPTypes
@_exported public import Retries
@_exported public import Serialization

@_exported public import struct Cookies.Cookie
@_exported public import enum Cookies.CookieError
@_exported public import struct Cookies.CookieFileError
@_exported public import struct Cookies.CookieJar
@_exported public import struct Cookies.CookieRequest
@_exported public import struct ImageCache.AutoPurgingImageCache
@_exported public import struct ImageCache.MemoryPressureError
@_exported public import struct ImageCache.MemoryPressureSource
@_exported public import enum Reachability.InterfaceKind
@_exported public import enum Reachability.NetlinkError
@_exported public import enum Reachability.NetworkStatus
