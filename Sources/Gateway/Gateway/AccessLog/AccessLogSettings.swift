import CLinux
import CachePolicy
import HTTPCore
import PinfoldEngine
import PinfoldMetrics
import PinfoldTLS

/// One exchange as it is logged, except its texts.
///
/// Everything is a number or an index, so that the worker can fill it in and copy it without
/// touching the heap; the log's thread turns it into text.
package struct AccessLogRecord: Sendable {
    /// When the request's head was complete, in milliseconds since 1970.
    package var timeMilliseconds: Int64 = 0
    /// The exchange's number, which also appears in error replies; logged as 16 hexadecimal digits.
    package var exchange: UInt64 = 0
    /// The client's address.
    package var clientAddress: IPAddress
    /// The client's port.
    package var clientPort: UInt16
    /// The listener's name (`AccessLogLabels.listeners`).
    package var listener = LabelIndex.other
    /// The host entry's name (`AccessLogLabels.hosts`).
    package var host = LabelIndex.other
    /// The status sent to the client; 0 if none was.
    package var status: UInt16 = 0
    /// The request's version; `nil` if the request line was not understood.
    package var version: HTTPVersion?
    /// What the client spoke in place of HTTP; `nil` if it spoke that.
    package var spoken: SpokenProtocol?
    /// The address that the client connected to, if it is none of the host's that it named.
    package var originalAddress: IPAddress?
    /// Its port.
    package var originalPort: UInt16 = 0
    /// The cache's part in it.
    package var cache: CacheResult = .none
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
    /// Why it was refused or failed, as an index in `AccessLogLabels.reasons`; `nil` if it was not.
    package var reason: UInt16?
    /// Why the server was asked; `nil` if it was not, or was not asked over HTTP.
    package var forwarded: ForwardReason?
    /// Why the response was not stored; `nil` if it was, or if there was none to store.
    package var notStored: NotStoredReason?
    /// The upstream's address; `nil` if none was connected to, and ``IPAddress/unnamed`` for a Unix
    /// socket.
    package var upstreamAddress: IPAddress?
    /// The upstream's port.
    package var upstreamPort: UInt16 = 0
    /// The request body's size in bytes, as content (without chunk framing).
    package var requestBytes: UInt64 = 0
    /// The response body's size in bytes, as content (without chunk framing); for a tunnel, the
    /// bytes sent to the client.
    package var responseBytes: UInt64 = 0
    /// From the request's complete head to the response's last byte, in microseconds.
    package var durationMicroseconds: UInt64 = 0

    /// A record of a client's exchange; everything else is to be filled in.
    package init(client: Endpoint) {
        clientAddress = client.address
        clientPort = client.port
    }

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
package struct AccessLogTexts: Sendable {
    /// The method as it was sent.
    package var method: ByteRange
    /// The request target as it was sent.
    package var target: ByteRange
    /// The value of `User-Agent`.
    package var userAgent: ByteRange
    /// The value of `Referer`.
    package var referer: ByteRange

    /// Creates the texts from these ranges.
    package init(
        method: ByteRange, target: ByteRange, userAgent: ByteRange, referer: ByteRange
    ) {
        self.method = method
        self.target = target
        self.userAgent = userAgent
        self.referer = referer
    }
}

/// Who was asking, and what rules did with an exchange, as texts. Most exchanges have none.
package struct AccessLogNotes: Sendable {
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
    }
}

/// The names for a record's indexes, which mean the same before and after a reload (`LabelTable`).
package struct AccessLogLabels: Sendable {
    /// Listener names.
    package var listeners: LabelTable
    /// Names of host entries; the same table as for the metrics.
    package var hosts: LabelTable
    /// Reason tokens; the same list as for the metrics.
    package var reasons: [String]

    /// Creates the labels from these names.
    package init(listeners: LabelTable, hosts: LabelTable, reasons: [String]) {
        self.listeners = listeners
        self.hosts = hosts
        self.reasons = reasons
    }
}

/// The limits of the access log.
package struct AccessLogLimits: Sendable, Equatable {
    /// The bytes that each worker may have queued; further lines are dropped and counted. Rounded
    /// up to a power of two of at least 64 KiB.
    package var queueBytes = 1 << 20
    /// The maximum number of bytes logged of a method; the rest is cut off. Likewise for the
    /// others.
    package var methodBytes = 64
    /// The maximum number of bytes logged of a target.
    package var targetBytes = 8192
    /// The maximum number of bytes logged of a user agent.
    package var userAgentBytes = 1024
    /// The maximum number of bytes logged of a referer.
    package var refererBytes = 2048
    /// How long a line waits to be written together with others, in milliseconds.
    package var flushMilliseconds = 100

    /// The defaults.
    package init() {}
}

/// The format of a line.
package enum AccessLogFormat: Sendable, CaseIterable {
    /// One JSON object (RFC 8259) per line, in UTF-8.
    case json
    /// Apache's combined format, times in UTC, with the exchange's id and its reason (`-` if there
    /// is none) at the end.
    case combined
}

/// Why the access log could not be opened.
package enum AccessLogError: Error, Sendable, Equatable {
    /// The file could not be opened or created; `code` is the errno.
    case open(path: String, code: Int32)
    /// The thread or its wake-up descriptor could not be created; `code` is the errno.
    case thread(code: Int32)
}

extension AccessLogError: CustomStringConvertible {
    /// What is wrong, with the configuration key concerned.
    package var description: String {
        func text(_ code: Int32) -> String {
            strerror(code).map { String(cString: $0) } ?? "error \(code)"
        }
        return switch self {
        case .open(let path, let code):
            "log.access.path: \"\(path)\" cannot be written: \(text(code))"
        case .thread(let code): "log.access: its thread cannot be started: \(text(code))"
        }
    }
}

/// What the log's thread reports for the operational log.
package enum AccessLogEvent: Sendable, Equatable {
    /// The file could not be reopened; the old one stays in use. `code` is the errno.
    case reopenFailed(path: String, code: Int32)
    /// Lines are being dropped because writing fails; reported once until it works again. `code` is
    /// the errno.
    case writeFailed(code: Int32)
    /// Writing works again, after `lines` lines were lost.
    case writeRecovered(lines: UInt64)
}
