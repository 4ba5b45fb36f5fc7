import PinfoldTLS
import Trust

extension TLSError {
    /// The token of the error, or of the reason for which the server is not trusted.
    var token: String {
        if case .trust(let failure) = self { failure.token } else { kind.rawValue }
    }
}
