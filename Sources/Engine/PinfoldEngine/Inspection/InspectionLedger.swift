import HTTPCore
import Locking
import PinfoldTLS
import Trust

/// What inspecting tunnels has found out under one trust configuration, for all workers: the
/// sessions that began in a verified tunnel, and the addresses that were probed.
///
/// Another configuration begins with an empty ledger, so none of this outlives a change of pins.
package final class InspectionLedger: Sendable {
    /// How long a probe's result is used, in milliseconds.
    package static let probeMilliseconds: Int64 = 60_000
    /// How long a session may be resumed at most, in seconds (RFC 5246 §F.1.4).
    static let sessionSeconds: Int64 = 86_400

    private let table = Locked(InspectionTable())

    package init() {}

    /// Whether a client's session was verified.
    /// - Parameter now: seconds since 1970.
    func knows(_ session: InspectedSession, at now: Int64) -> Int64? {
        table.withLock { $0.end(of: session, at: now) }
    }

    /// A session was verified.
    /// - Parameters:
    ///   - end: when its proof expires, in seconds since 1970.
    func note(_ session: InspectedSession, until end: Int64, at now: Int64) {
        table.withLock { $0.note(session, until: min(end, now + Self.sessionSeconds)) }
    }

    /// The result of a probe of an address, if it is recent.
    /// - Parameters:
    ///   - now: milliseconds of a monotonic clock.
    ///   - wall: seconds since 1970.
    func probe(of server: ProbedServer, at now: Int64, wall: Int64) -> ProbedTrust? {
        table.withLock { $0.probe(of: server, at: now) }
            .flatMap { $0.expires ?? .max > wall ? $0 : nil }
    }

    /// Records that a probe found a trusted server. One that was refused is probed again by the
    /// next tunnel.
    /// - Parameter client: the client whose tunnel needed it.
    func note(
        _ trust: ProbedTrust, of server: ProbedServer, for client: IPNetwork?, at now: Int64
    ) {
        table.withLock {
            $0.note(trust, of: server, for: client, until: now + Self.probeMilliseconds)
        }
    }
}

/// A session that a client may offer to resume: its identity, its client and its server.
struct InspectedSession: Hashable {
    /// The client, as limits count clients: a session's identifier alone proves nothing, because a
    /// rogue server may have given it to another client.
    let client: IPNetwork
    let authority: BoundAuthority
    /// The SHA-256 of its ticket, or of its identifier.
    let digest: SHA256Digest
}

/// A server that was probed.
struct ProbedServer: Hashable {
    let endpoint: Endpoint
    let authority: BoundAuthority
    /// The protocols offered by ALPN, which may determine the server that answers.
    let applicationProtocols: [UInt8]
}

/// What a probe has found out about a trusted server.
struct ProbedTrust: Hashable {
    /// Whether it accepts Encrypted ClientHello, so that a client may have asked it for a different
    /// server.
    var readsEncryptedHello = false
    /// When the verdict expires, in seconds since 1970; `nil` if it is valid as long as it is kept.
    var expires: Int64?
}

/// The ledger's tables, as pure values: the time is an argument. Each client has a share of both.
struct InspectionTable {
    /// The most sessions that are kept, about 250 bytes each.
    static let sessionLimit = 16_384
    static let probeLimit = 4096

    private var sessions: ShareTable<InspectedSession, Int64>
    private var probes: ShareTable<ProbedServer, (trust: ProbedTrust, end: Int64)>

    init(sessionLimit: Int = Self.sessionLimit, probeLimit: Int = Self.probeLimit) {
        sessions = ShareTable(limit: sessionLimit)
        probes = ShareTable(limit: probeLimit)
    }

    mutating func end(of session: InspectedSession, at now: Int64) -> Int64? {
        guard let end = sessions.use(session) else { return nil }
        guard end > now else {
            sessions.remove(session)
            return nil
        }
        return end
    }

    mutating func note(_ session: InspectedSession, until end: Int64) {
        sessions.set(end, for: session, of: session.client)
    }

    mutating func probe(of server: ProbedServer, at now: Int64) -> ProbedTrust? {
        guard let known = probes.use(server) else { return nil }
        guard known.end > now else {
            probes.remove(server)
            return nil
        }
        return known.trust
    }

    mutating func note(
        _ trust: ProbedTrust, of server: ProbedServer, for client: IPNetwork?, until end: Int64
    ) {
        probes.set((trust, end), for: server, of: client)
    }
}
