import HTTPCore
import PinfoldTLS

/// Why a proxy did not let a request through to its server.
package enum ProxyError: Error, Sendable {
    /// There is no connection to it: its name, its address, or the time that it took.
    case unreachable(ExchangeError)
    /// There is no trust in it, or no TLS with it.
    case tlsFailed(TLSError)
    /// It did not open the tunnel in time.
    case timeout
    /// It answered CONNECT by another status than 2xx.
    case refused(ProxyAnswer)
    /// It ended the connection before it answered.
    case closed
    /// What it answered is no response by the rules of HTTP.
    case badAnswer(WireError)
    /// It answered CONNECT with interim responses without end.
    case tooManyInterim
    /// It sent something behind the head that opens a tunnel, before anything was sent through.
    case spokeUnasked

    /// What its reason is in the vocabulary.
    var reason: ProxyReason {
        switch self {
        case .unreachable: .unreachable
        case .tlsFailed: .tlsFailed
        case .timeout: .timeout
        case .refused(let answer): answer.status == 407 ? .authenticationRequired : .refused
        case .closed, .badAnswer, .tooManyInterim, .spokeUnasked: .badResponse
        }
    }

    /// What it has to tell beyond its reason's meaning; nil: nothing.
    var detail: String? {
        switch self {
        case .unreachable(.connectFailed(let error)): return "\(error)"
        case .unreachable(let fault): return fault.explanation
        case .tlsFailed(let error): return "\(error)"
        case .timeout: return nil
        case .refused(let answer): return "it answered with status \(answer.status)"
        case .closed: return "it closed the connection before it answered"
        case .badAnswer(let error): return "\(error.explanation)"
        case .tooManyInterim: return "it sent interim responses without end"
        case .spokeUnasked: return "something follows the head that opens the tunnel"
        }
    }
}

/// What a proxy answered to CONNECT.
package struct ProxyAnswer: Sendable, Equatable {
    package struct Field: Sendable, Equatable {
        package let name: String
        package let value: String
    }

    package let status: UInt16
    /// In their order; bytes that are no UTF-8 are replaced.
    package let fields: [Field]

    init(status: UInt16, fields: [Field] = []) {
        self.status = status
        self.fields = fields
    }

    /// - Parameter bytes: of the head.
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
    /// What a fault on the way to a proxy is for an exchange: nobody's but this program's own stay
    /// as they are.
    init(onTheWayToProxy fault: ExchangeError) {
        if fault.isOwn {
            self = fault
            return
        }
        switch fault {
        case .tlsFailed(let error): self = .proxy(.tlsFailed(error))
        case .tlsTimeout: self = .proxy(.timeout)
        default: self = .proxy(.unreachable(fault))
        }
    }
}
