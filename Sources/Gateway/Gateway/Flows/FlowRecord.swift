import CachePolicy
import HTTPCore
import PinfoldEngine
import PinfoldMetrics
import PinfoldTLS

/// One exchange that has ended, except its texts: what the access log, and whatever else shows
/// exchanges, is made of. It is made once for all of them (`Worker+Flows`).
///
/// Everything is a number or an index, so that the worker can fill it in and copy it without
/// touching the heap; whoever shows it turns it into text.
package struct FlowRecord: Sendable {
    /// What is counted of it: where it came in and where it went, its status, what the cache did,
    /// its duration, its bytes, and why it failed or was not stored.
    package var counted: ExchangeRecord
    /// What it spent its time on.
    package var phases = PhaseTimes()
    /// When the request's head was complete, in milliseconds since 1970.
    package var timeMilliseconds: Int64 = 0
    /// The exchange's number, which also appears in error replies; shown as 16 hexadecimal digits.
    package var exchange: UInt64 = 0
    /// The client's address.
    package var clientAddress: IPAddress
    /// The client's port.
    package var clientPort: UInt16
    /// The request's version; `nil` if the request line was not understood.
    package var version: HTTPVersion?
    /// What the client spoke in place of HTTP; `nil` if it spoke that.
    package var spoken: SpokenProtocol?
    /// The address that the client connected to, if it is none of the host's that it named.
    package var originalAddress: IPAddress?
    /// Its port.
    package var originalPort: UInt16 = 0
    /// The client's TLS version; `nil` for clear text.
    package var clientTLS: TLSVersion?
    /// Whether it is a CONNECT whose tunnel ends in the gateway, or a request in one.
    package var isIntercepted = false
    /// Why a tunnel to an intercepted host was relayed nevertheless; `nil` for all others.
    package var interceptionPass: InterceptionPass?
    /// The result of inspecting the tunnel; `nil` if it was not inspected.
    package var inspection: TunnelInspection?
    /// The version that the upstream connection carries; `nil` if there was none, and for tunnels.
    package var upstreamVersion: HTTPVersion?
    /// The TLS version of the upstream connection; `nil` for clear text, or if there was none.
    package var upstreamTLS: TLSVersion?
    /// Whether the upstream connection was there before it was asked for; `nil` if there was none.
    package var isReused: Bool?
    /// What pins had to do with the server; `nil` without TLS, and for most that nobody looks at.
    package var pins: PinVerdict?
    /// Why the server was asked; `nil` if it was not, or was not asked over HTTP.
    package var forwarded: ForwardReason?
    /// The upstream's address, or that which was tried last; `nil` if there is none, and
    /// ``IPAddress/unnamed`` for a Unix socket.
    package var upstreamAddress: IPAddress?
    /// The upstream's port.
    package var upstreamPort: UInt16 = 0

    /// The trace that it belongs to; `nil` if there is none.
    package var trace: ExchangeTrace?
    /// Of how many exchanges like this one the access log has a line, in millionths; 0 for all.
    package var sampleMillionths: UInt32 = 0
    /// When the request's head was complete, in microseconds since 1970; 0 unless its spans are
    /// recorded.
    package var beganMicroseconds: Int64 = 0

    /// A record of a client's exchange; everything else is to be filled in.
    package init(client: Endpoint, counted: ExchangeRecord, phases: PhaseTimes = PhaseTimes()) {
        self.counted = counted
        self.phases = phases
        clientAddress = client.address
        clientPort = client.port
    }

    /// Why the response was not stored; `nil` if it was, or if there was none to store.
    package var notStored: NotStoredReason? {
        counted.notStored.flatMap { NotStoredReason(rawValue: UInt8(clamping: $0)) }
    }

    /// What the request came in: the version of HTTP, or what its client spoke in place of it.
    var protocolLabel: StaticString { spoken?.text ?? version?.text ?? "" }

    /// Sets the upstream's address and port.
    package mutating func setUpstream(_ endpoint: Endpoint) {
        upstreamAddress = endpoint.address
        upstreamPort = endpoint.port
    }
}

/// What a client speaks whose tunnel is logged as a CONNECT that it has not sent.
package enum SpokenProtocol: Sendable, Equatable {
    case socks5
    /// TLS with a server, at a transparent listener.
    case tls
    /// Anything else there.
    case tcp

    /// The word in the place of a version of HTTP.
    package var text: StaticString {
        switch self {
        case .socks5: "SOCKS5"
        case .tls: "TLS"
        case .tcp: "TCP"
        }
    }
}

/// The ranges of an exchange's texts in the bytes of its request head; an empty range means an
/// absent text.
///
/// Credentials are excluded: `Authorization` and the like are never logged, and userinfo in a
/// target or referer is replaced by `***`. Queries are logged, as part of the target.
package struct FlowTexts: Sendable {
    /// The method as it was sent.
    package var method: ByteRange
    /// The request target as it was sent.
    package var target: ByteRange
    /// `host[:port]` as the request names it: in its target, or in Host.
    package var authority: ByteRange
    /// The value of `User-Agent`.
    package var userAgent: ByteRange
    /// The value of `Referer`.
    package var referer: ByteRange

    /// Creates the texts from these ranges.
    package init(
        method: ByteRange, target: ByteRange, authority: ByteRange = ByteRange(),
        userAgent: ByteRange, referer: ByteRange
    ) {
        self.method = method
        self.target = target
        self.authority = authority
        self.userAgent = userAgent
        self.referer = referer
    }
}

/// Who was asking, and what rules did with an exchange, as texts. Most exchanges have none.
package struct FlowNotes: Sendable {
    /// How many bytes of names are logged of rules that only report.
    private static let reportedBytes = 1024

    /// What the rules of its route changed in the content.
    let steps: [UInt8]
    /// The name of the access rule that decided, in UTF-8.
    let rule: [UInt8]
    /// The names of access rules that only report, separated by commas.
    let reported: [UInt8]
    /// Who was asking, in UTF-8, where the listener wanted to know.
    let user: [UInt8]
    /// The name of the parent that the request went through, or the path of the Unix socket that it
    /// went to.
    let way: [UInt8]
    /// `host:port` of a request at a transparent listener, whose target does not say so.
    package var authority: [UInt8] = []
    /// The fields of its heads that the access log tells (``HeadFields``).
    var fields: [UInt8] = []

    package init(
        steps: [UInt8] = [], rule: [UInt8] = [], reported: [String] = [], user: [UInt8] = [],
        way: [UInt8] = []
    ) {
        self.way = way
        self.steps = steps
        self.user = user
        self.rule = rule
        self.reported =
            reported.isEmpty
            ? [] : Array(reported.joined(separator: ",").utf8.prefix(Self.reportedBytes))
    }

    var count: Int {
        steps.count + rule.count + reported.count + user.count + way.count + authority.count
            + fields.count
    }
}
