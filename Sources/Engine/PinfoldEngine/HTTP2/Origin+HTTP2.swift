import HTTP2
import HTTPCore
import PinfoldConfiguration
import PinfoldTLS

/// How far HTTP/2 is spoken with a server, as far as that is known.
struct HTTP2Standing {
    /// Whether the server may select it, or is known to speak it.
    let isOffered: Bool
    /// Whether nothing else is spoken.
    let isRequired: Bool
    /// For how many of those who wait one connection that is being made is enough.
    private(set) var streamsPerConnection: Int
    /// When a connection was last begun for somebody who still waits, in the loop's milliseconds.
    var attemptedAt = Int64.min / 2
    /// HTTP/1.1 is spoken until then, in the loop's milliseconds.
    var avoidedUntil = Int64.min
    /// Whether the server is known to take other protocols in streams (RFC 8441).
    var takesExtendedConnect = false
    /// The same server over HTTP/1.1; `nil` until it is needed.
    var sibling: Origin?
    /// The origin whose sibling it is of.
    weak var elder: Origin?
    /// What makes another connection if the first one is slow.
    var secondAttempt: SecondAttempt?

    /// As long as nothing is known of a server, one connection is made for all.
    private static let untried = 1 << 20

    init(
        _ policy: PolicySnapshot, entryIndex: Int?, _ tls: TLSClientContext?, _ key: Origin.Key
    ) {
        let choice = entryIndex.map { policy.configuration.hosts.entries[$0].http2 } ?? .auto
        let isServer = if case .proxy = key.proxyUse { false } else { true }
        isRequired = choice == .require && isServer && !key.takesOnlyHTTP1
        isOffered =
            tls.map { $0.settings.applicationProtocols.contains("h2") && !key.takesOnlyHTTP1 }
            ?? isRequired
        streamsPerConnection = isOffered ? Self.untried : 1
    }

    /// Whether what is asked for has to be over HTTP/1.1, if that may be spoken.
    func lacks(_ request: SwitchRequest) -> Bool {
        switch request {
        case .none: false
        case .inStream: !takesExtendedConnect
        case .byUpgrade: true
        }
    }

    /// Whether a connection that several may share is on its way, and has not been for long.
    func mayBeWaitedFor(at now: Int64) -> Bool {
        streamsPerConnection > 1 && now - attemptedAt < SecondAttempt.milliseconds
    }

    /// Nobody waits any more for connections that are being made: who comes next gets another.
    mutating func isAwaitedByNobody() { attemptedAt = .min / 2 }

    /// A connection has been made, or has failed, which is no reason to count on the next.
    /// - Returns: whether exchanges that counted on it need others.
    mutating func learned(isShared: Bool) -> Bool {
        guard isOffered, isShared != (streamsPerConnection > 1) else { return false }
        streamsPerConnection = isShared ? Self.untried : 1
        return !isShared
    }

    /// The server has said how many streams it allows on a connection.
    mutating func allows(streams: Int) { streamsPerConnection = max(1, streams) }
}

extension Origin {
    /// How long HTTP/1.1 is spoken with a server whose HTTP/2 has failed.
    private static let fallbackMilliseconds: Int64 = 300_000

    /// Whether more exchanges wait than the connections on their way are enough for.
    var needsConnection: Bool { needsConnection(besides: 0) }

    /// The same if so many others wait as well.
    func needsConnection(besides others: Int) -> Bool {
        waiters.count + others > (connecting &+ settling) &* http2.streamsPerConnection
    }

    /// The same server over HTTP/1.1, for what cannot be done over HTTP/2.
    var inHTTP1: Origin {
        if let sibling = http2.sibling { return sibling }
        var key = key
        key.takesOnlyHTTP1 = true
        let made = Origin(
            key: key, policy: policy, entryIndex: entryIndex, refusal: refusal, match: match,
            carrier: carrier, context: tls)
        made.maxConnections = maxConnections
        http2.sibling = made
        made.http2.elder = self
        return made
    }

    /// The server has broken the rules of HTTP/2: HTTP/1.1 is spoken with it for a while.
    func http2Failed(
        _ reason: ConnectionReason, at endpoint: Endpoint, in environment: Environment
    ) {
        let fallsBack = speaksHTTP1Again(in: environment)
        environment.shared.logger.warning(
            "a server broke the rules of HTTP/2\(fallsBack ? ": HTTP/1.1 for 5 minutes" : "")",
            metadata: [
                "host": "\(key.host)", "port": "\(key.port)", "server": "\(endpoint)",
                "reason": "\(reason.reason)", "detail": "\(reason.explanation)",
            ])
    }

    /// A new connection with HTTP/1.1 could not be used: a server that speaks only HTTP/2 is spoken
    /// to in that again, whatever it did.
    func http1Failed(_ fault: ExchangeError) {
        switch fault {
        case .server(.upstreamClosed), .upstreamReset, .upstreamUnanswered, .response, .tlsFailed:
            http2.elder?.http2.avoidedUntil = .min
        default: break
        }
    }

    /// HTTP/1.1 is spoken for a while, unless the configuration requires HTTP/2.
    @discardableResult
    func speaksHTTP1Again(in environment: Environment) -> Bool {
        guard !http2.isRequired, tls != nil else { return false }
        http2.avoidedUntil = environment.loop.now + Self.fallbackMilliseconds
        environment.metrics.add(.http2Fallbacks)
        return true
    }
}
