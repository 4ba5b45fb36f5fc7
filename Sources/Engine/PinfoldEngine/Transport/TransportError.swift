import EventLoop
import PinfoldTLS

/// Why a transport is broken.
///
/// What the session says is boxed: it is long, and every result of a read would be as long.
package enum TransportError: Error, Equatable {
    /// The socket failed.
    case reset(Errno)
    /// The session did.
    indirect case tls(TLSError)
    /// There was a failure before, and nothing more is known.
    case closed
}
