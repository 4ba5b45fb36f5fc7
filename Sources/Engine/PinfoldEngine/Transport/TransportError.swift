import EventLoop
import PinfoldTLS

/// Why a transport is broken.
///
/// The session's error is boxed: it is large, and would make every result of a read as large.
package enum TransportError: Error, Equatable {
    /// The socket failed.
    case reset(Errno)
    /// The TLS session failed.
    indirect case tls(TLSError)
    /// It failed before; nothing more is known.
    case closed
}
