import Locking
import Pinning

/// What the session cache holds at most.
package struct TLSSessionLimits: Hashable, Sendable {
    /// Sessions in all; the least recently used servers' make room.
    package var sessions = 4096
    /// Sessions of one server under one policy; the newest stay. Servers send two tickets per
    /// connection, and a TLS 1.3 ticket serves one connection.
    package var sessionsPerServer = 4
    /// The longest age at which a session is resumed, whatever the server allows.
    package var lifetimeSeconds: Int64 = 7200

    package init() {}
}

/// Sessions to resume, of trusted servers only, for all contexts and threads.
///
/// A session belongs to the context that obtained it. A context's policy never changes, and
/// another context, made by a reload or for another host entry, has another identity: so a resumed
/// session was always judged by the policy that it is used under. It is not resumed after the
/// verified chain has expired.
///
/// Lock: one mutex, held for dictionary operations only; taken once per connection made and once
/// per ticket received.
package final class TLSSessionCache: Sendable {
    /// Whose sessions these are.
    struct Key: Hashable {
        var context: UInt64
        var host: String
        var port: UInt16
    }

    /// A session in its ASN.1 form, so that no library object is shared between threads.
    struct Session {
        var bytes: [UInt8]
        /// Seconds since 1970; not resumed from then on.
        var expires: Int64
        /// Whether it is used for one connection only (RFC 8446 §C.4).
        var isSingleUse: Bool
        /// What the full handshake found.
        var facts: TrustFacts
    }

    private struct Server {
        /// Oldest first.
        var sessions: [Session]
        var lastUse: UInt64
    }

    private struct State {
        var servers: [Key: Server] = [:]
        var sessions = 0
        var uses: UInt64 = 0
    }

    package let limits: TLSSessionLimits
    private let state = Locked(State())

    package init(limits: TLSSessionLimits = TLSSessionLimits()) {
        self.limits = limits
    }

    /// How many sessions are held.
    package var count: Int { state.withLock { $0.sessions } }

    /// Keeps a session as the server's newest.
    func insert(_ session: Session, for key: Key) {
        guard limits.sessions > 0, limits.sessionsPerServer > 0 else { return }
        state.withLock { state in
            state.uses += 1
            var server = state.servers.removeValue(forKey: key) ?? Server(sessions: [], lastUse: 0)
            server.sessions.append(session)
            server.lastUse = state.uses
            state.sessions += 1
            if server.sessions.count > limits.sessionsPerServer {
                server.sessions.removeFirst()
                state.sessions -= 1
            }
            state.servers[key] = server
            if state.sessions > limits.sessions { TLSSessionCache.evict(&state, limits) }
        }
    }

    /// Drops the least recently used servers until an eighth of the room is free: sorting at every
    /// insertion would cost more than the sessions are worth.
    private static func evict(_ state: inout State, _ limits: TLSSessionLimits) {
        let target = limits.sessions - limits.sessions / 8
        let oldestFirst = state.servers.sorted { $0.value.lastUse < $1.value.lastUse }
        for (key, server) in oldestFirst {
            guard state.sessions > target else { return }
            state.servers.removeValue(forKey: key)
            state.sessions -= server.sessions.count
        }
    }

    /// The newest session that can be resumed at `now` (seconds since 1970), or nil. A single-use
    /// session is removed with that, an expired one too.
    func take(for key: Key, now: Int64) -> Session? {
        state.withLock { state in
            guard var server = state.servers.removeValue(forKey: key) else { return nil }
            state.uses += 1
            let before = server.sessions.count
            server.sessions.removeAll { $0.expires <= now }
            let session = server.sessions.last
            if let session, session.isSingleUse { server.sessions.removeLast() }
            server.lastUse = state.uses
            state.sessions -= before - server.sessions.count
            if !server.sessions.isEmpty { state.servers[key] = server }
            return session
        }
    }

    /// Drops the sessions of a context that is gone.
    func removeSessions(ofContext context: UInt64) {
        state.withLock { state in
            state.servers = state.servers.filter { $0.key.context != context }
            state.sessions = state.servers.values.reduce(0) { $0 + $1.sessions.count }
        }
    }
}
