import HTTPCore
import PinfoldTLS
import ProxyProtocols

/// Why a request could not be sent through a proxy.
package enum ProxyError: Error, Sendable {
    /// It could not be connected to: its name or address failed, or it took too long.
    case unreachable(ExchangeError)
    /// Its address is one that the gateway itself listens on.
    case ownAddress
    /// It is not trusted, or TLS with it failed.
    case tlsFailed(TLSError)
    /// It did not open the tunnel in time.
    case timeout
    /// It answered CONNECT with a status other than 2xx.
    case refused(ProxyAnswer)
    /// It or a proxy behind it has found that requests go round in a circle (508).
    case loop
    /// What it answered by SOCKS5 does not open a connection.
    case socks(SOCKS5Error)
    /// It would resolve the name, whose addresses the gateway cannot find out.
    case nameUnchecked(ExchangeError)
    /// It ended the connection before it answered.
    case closed
    /// Its answer is not a valid HTTP response.
    case badAnswer(WireError)
    /// It answered CONNECT with too many interim responses.
    case tooManyInterim
    /// It sent data after the head that opens the tunnel, before anything was sent through it.
    case spokeUnasked

    /// Its reason.
    var reason: ProxyReason {
        switch self {
        case .unreachable: .unreachable
        case .tlsFailed: .tlsFailed
        case .timeout: .timeout
        case .refused(let answer): answer.status == 407 ? .authenticationRequired : .refused
        case .loop, .ownAddress: .loop
        case .socks(.refused): .refused
        case .socks(.authenticationRequired), .socks(.authenticationFailed):
            .authenticationRequired
        case .nameUnchecked: .nameUnchecked
        case .closed, .badAnswer, .tooManyInterim, .spokeUnasked, .socks: .badResponse
        }
    }

    /// Details beyond the reason's meaning; `nil` if there are none.
    var detail: String? {
        switch self {
        case .unreachable(.connectFailed(let error)): return "\(error)"
        case .unreachable(let fault): return fault.explanation
        case .tlsFailed(let error): return "\(error)"
        case .timeout: return nil
        case .refused(let answer): return "it answered with status \(answer.status)"
        case .loop: return nil
        case .ownAddress: return "the proxy's address is one that this gateway listens on"
        case .socks(let error): return "\(error)"
        case .nameUnchecked(let fault): return fault.explanation
        case .closed: return "it closed the connection before it answered"
        case .badAnswer(let error): return "\(error.explanation)"
        case .tooManyInterim: return "it sent too many interim responses"
        case .spokeUnasked: return "data follows the head that opens the tunnel"
        }
    }
}

/// A proxy's answer to CONNECT.
package struct ProxyAnswer: Sendable, Equatable {
    package struct Field: Sendable, Equatable {
        package let name: String
        package let value: String
    }

    package let status: UInt16
    /// In order; invalid UTF-8 is replaced.
    package let fields: [Field]

    init(status: UInt16, fields: [Field] = []) {
        self.status = status
        self.fields = fields
    }

    /// - Parameter bytes: the bytes of the head.
    init(_ head: borrowing ResponseHead, in bytes: UnsafeRawBufferPointer) {
        status = head.status
        fields = head.fields.map { field in
            Field(
                name: String(decoding: bytes[field.name.indices], as: UTF8.self),
                value: String(decoding: bytes[field.value.indices], as: UTF8.self))
        }
    }
}

extension ExchangeError {
    /// The error of an exchange for an error on the way to a proxy. Only errors caused by this
    /// program itself stay as they are.
    init(onTheWayToProxy fault: ExchangeError) {
        if fault.isOwn {
            self = fault
            return
        }
        switch fault {
        case .access(.ownListenerRefused): self = .proxy(.ownAddress)
        case .tlsFailed(let error): self = .proxy(.tlsFailed(error))
        case .tlsTimeout: self = .proxy(.timeout)
        default: self = .proxy(.unreachable(fault))
        }
    }
}
