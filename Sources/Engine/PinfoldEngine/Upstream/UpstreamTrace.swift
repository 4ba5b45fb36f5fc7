import EventLoop
import Logging
import PinfoldTLS

// What happens to connections to origins, at log level trace: one line per event. The functions
// here are called only if `Environment.traces` is set, so they cost nothing otherwise.

/// Why the pool closes a connection on which no exchange is in progress, or does not keep one.
enum PoolClosing: String {
    /// It was idle for `timeouts.idle`.
    case idleTimeout = "idle-timeout"
    /// The server ended it, or sent unsolicited data.
    case serverEndedOrSpoke = "server-ended-or-spoke"
    /// Its permit goes to another connection of this environment.
    case makesRoom = "makes-room"
    /// Its permit goes to an exchange that waits elsewhere: in another worker, or for another
    /// origin.
    case waitedForElsewhere = "waited-for-elsewhere"
    /// The limit was lowered, and there are more connections than it allows.
    case overLimit = "over-limit"
    /// It was made under a configuration that is no longer in force.
    case outdated
    /// It has not carried a request, and the number of such connections, in total or for its
    /// client, is at its limit.
    case unused
    /// A certificate by which the server was verified, or a pinset, has expired since.
    case trustEnded = "trust-ended"
    /// It was of one client, whose own connection has ended.
    case clientLeft = "client-left"
    /// The gateway is stopping.
    case draining
    /// One of the two sides asked for it to be closed.
    case notPersistent = "not-persistent"
    /// The response ended before the request.
    case requestUnfinished = "request-unfinished"
    /// Bytes follow the response.
    case unreadBytes = "unread-bytes"
}

/// How a wait for a connection ended.
enum PoolWaitEnd: String {
    /// With a connection.
    case connection
    /// The connection that was made for it failed.
    case failed
    /// No other worker had a connection to give up, and waiting is not allowed.
    case refused
    /// The waiter gave up, or waited too long.
    case abandoned
    /// The configuration changed: the origin is looked up again.
    case superseded
}

/// The limit that a permit is from, by its key in the configuration.
enum PoolLimit: String {
    case origin = "limits.upstreamPerHost"
    case total = "limits.connections"
    case pending = "limits.pending"
}

// MARK: The pool

extension UpstreamPool {
    /// - Parameter idleSince: `nil` if it goes directly from one exchange to the next in the queue.
    @inline(never)
    func traceReuse(
        _ connection: any PooledConnection, _ consumer: any UpstreamConsumer,
        idleSince: Int64? = nil
    ) {
        var metadata = connection.traced
        metadata["id"] = consumer.tracedID
        metadata["idle"] = "\(idleSince.map { environment.loop.now - $0 } ?? 0)ms"
        write("connection reused", metadata)
    }

    @inline(never)
    func traceKept(_ connection: any PooledConnection) {
        var metadata = connection.traced
        metadata["idle_connections"] = "\(connection.origin.idle.count)"
        write("connection kept", metadata)
    }

    @inline(never)
    func traceNotKept(_ connection: any PooledConnection, _ reason: PoolClosing) {
        var metadata = connection.traced
        metadata["reason"] = "\(reason.rawValue)"
        write("connection not kept", metadata)
    }

    @inline(never)
    func traceEvicted(_ connection: any PooledConnection, _ reason: PoolClosing) {
        var metadata = connection.traced
        metadata["reason"] = "\(reason.rawValue)"
        metadata["idle"] = "\(environment.loop.now - connection.idleSince)ms"
        write("idle connection closed", metadata)
    }

    @inline(never)
    func traceWait(_ origin: Origin, _ consumer: any UpstreamConsumer) {
        var metadata = origin.traced
        metadata["id"] = consumer.tracedID
        metadata["limit"] = "\((origin.isStarved ? PoolLimit.total : .origin).rawValue)"
        metadata["waiting"] = "\(origin.waiters.count)"
        write("waits for a place", metadata)
    }

    @inline(never)
    func tracePermit(_ origin: Origin, _ limit: PoolLimit) {
        var metadata = origin.traced
        metadata["limit"] = "\(limit.rawValue)"
        write("place granted", metadata)
    }

    @inline(never)
    func traceWaitEnd(
        _ waiter: WaiterQueue.Waiter, _ origin: Origin, _ end: PoolWaitEnd, microseconds: UInt64
    ) {
        var metadata = origin.traced
        metadata["id"] = waiter.consumer.tracedID
        metadata["end"] = "\(end.rawValue)"
        metadata["waited"] = "\(microseconds)us"
        write("wait ended", metadata)
    }

    @inline(never)
    func traceRefusal(_ origin: Origin, _ consumer: any UpstreamConsumer) {
        var metadata = origin.traced
        metadata["id"] = consumer.tracedID
        metadata["limit"] = "\(PoolLimit.pending.rawValue)"
        write("place refused", metadata)
    }

    private func write(_ event: StaticString, _ metadata: Logger.Metadata) {
        environment.trace(event, metadata)
    }
}

// MARK: A connection

extension UpstreamConnection {
    /// It is about to be closed; after a complete response, also why it cannot carry another
    /// exchange.
    @inline(never)
    func traceEnd() {
        if http.isInExchange, http.responsePart == .ended {
            pool.traceNotKept(self, notKeptReason)
        }
        traceClosed()
    }

    private var notKeptReason: PoolClosing {
        guard http.persists else { return .notPersistent }
        return requestIsSent ? .unreadBytes : .requestUnfinished
    }

    @inline(never)
    func traceHandshakeStart(_ tls: TLSClientConnection) {
        var metadata = origin.traced
        metadata["server"] = "\(endpoint)"
        metadata["sni"] = "\(tls.serverName ?? "")"
        metadata["alpn"] = "\(tls.settings.applicationProtocols.joined(separator: ","))"
        metadata["min_version"] = "\(tls.settings.minimumVersion.text)"
        metadata["session"] = tls.offersSession ? "offered" : "none"
        environment.trace("tls handshake started", metadata)
    }

    /// The server is trusted, by this handshake or by the one that created the resumed session.
    @inline(never)
    func traceHandshakeEnd(_ tls: TLSClientConnection, microseconds: UInt64) {
        let pinsets = tls.settings.policy.pinsets
        var metadata = origin.traced
        metadata["server"] = "\(endpoint)"
        metadata["version"] = "\(tls.version?.text ?? "")"
        metadata["cipher"] = "\(tls.cipherSuite ?? "")"
        metadata["alpn"] = "\(tls.applicationProtocol ?? "")"
        metadata["resumed"] = "\(tls.isResumed)"
        metadata["verified"] = tls.isResumed ? "by-the-session" : "by-the-handshake"
        let compared = pinsets.contains { $0.mode != .none } ? "passed" : "none"
        metadata["pins"] = "\(tls.facts?.isReported == true ? "reported" : compared)"
        metadata["pinsets"] = "\(pinsets.map(\.name).joined(separator: ","))"
        metadata["duration"] = "\(microseconds)us"
        environment.trace("tls handshake finished", metadata)
    }

    @inline(never)
    func traceHandshakeFailure(_ fault: ExchangeError) {
        var metadata = origin.traced
        metadata["server"] = "\(endpoint)"
        metadata["reason"] = "\(fault.reason.token)"
        metadata["detail"] = "\(fault.explanation)"
        metadata["alert_sent"] = "\(transport.tls?.sentAlert.map { "\($0)" } ?? "none")"
        if case .tlsFailed(.trust(let failure)) = fault {
            metadata["pinset"] = "\(failure.pinset ?? "")"
        }
        environment.trace("tls handshake failed", metadata)
    }
}

extension PooledConnection {
    /// It is about to be closed.
    @inline(never)
    func traceClosed() { environment.trace("closed", traced) }

    /// The fields that identify a connection in every line.
    fileprivate var traced: Logger.Metadata {
        var metadata = origin.traced
        metadata["server"] = "\(endpoint)"
        metadata["uses"] = "\(uses)"
        return metadata
    }
}

extension Origin {
    /// The fields that identify an origin in every line.
    fileprivate var traced: Logger.Metadata {
        ["host": "\(key.host)", "port": "\(key.port)"]
    }
}

extension UpstreamConsumer {
    /// The exchange's id; `nil` for a probe.
    fileprivate var tracedID: Logger.MetadataValue? {
        (self as? Exchange).map { "\($0.idText)" }
    }
}
