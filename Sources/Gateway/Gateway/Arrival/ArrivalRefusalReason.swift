import PinfoldMetrics
import ProxyProtocols

/// Why a connection is closed that was to begin with a PROXY header.
enum ArrivalRefusalReason: Equatable {
    /// It comes from none of the networks of `proxyProtocol.from`.
    case sender
    /// What arrived is no header.
    case header(ProxyHeaderError)
    /// The header was not complete within `timeouts.head`.
    case timeout
    /// The connection ended before the header did.
    case closed

    /// The word for it in the log.
    var token: String {
        switch self {
        case .sender: "proxy-header-sender-not-allowed"
        case .header(.missing): "proxy-header-missing"
        case .header(.checksum): "proxy-header-checksum-wrong"
        case .header(.impossibleAddress): "proxy-header-address-impossible"
        case .header: "proxy-header-malformed"
        case .timeout: "proxy-header-timeout"
        case .closed: "proxy-header-incomplete"
        }
    }

    /// What is wrong, and what was expected.
    var explanation: String {
        switch self {
        case .sender:
            "the listener accepts connections only from the networks of proxyProtocol.from"
        case .header(let error): error.explanation
        case .timeout: "the header was not complete within timeouts.head"
        case .closed: "the connection ended before the header was complete"
        }
    }

    /// Where it is counted.
    var counter: WorkerCounter {
        switch self {
        case .sender: .proxyHeadersSenderRefused
        case .header(.missing): .proxyHeadersMissing
        case .header(.checksum): .proxyHeadersChecksumWrong
        case .header(.impossibleAddress): .proxyHeadersAddressImpossible
        case .header: .proxyHeadersMalformed
        case .timeout: .proxyHeadersTimeout
        case .closed: .proxyHeadersClosed
        }
    }
}
