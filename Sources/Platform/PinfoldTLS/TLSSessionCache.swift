import HTTPCore
import Locking
import Trust

/// The limits of the session cache.
package struct TLSSessionLimits: Hashable, Sendable {
    /// Sessions in total; each client has a share of them. The least recently used servers'
    /// sessions of the largest share give way.
    package var sessions = 4096
    /// Sessions of one server under one policy; the newest are kept. Servers send two tickets per
    /// connection, and a TLS 1.3 ticket serves one connection.
    package var sessionsPerServer = 4
    /// The maximum age at which a session is resumed, whatever the server allows.
    package var lifetimeSeconds: Int64 = 7200

    package init() {}
}

/// Sessions for resumption, of trusted servers only, for all contexts and threads.
///
/// A session belongs to the context that obtained it. A context's policy never changes, and another
/// context, created by a reload or for another host entry, has another identity; a resumed session
/// was therefore always verified by the policy that it is used under. It is not resumed after the
/// verified chain has expired.
///
/// Lock: one mutex, held for dictionary operations only; taken once per connection and once per
/// ticket received.
package final class TLSSessionCache: Sendable {
    /// Which server's sessions these are, under which context.
    struct Key: Hashable {
        var context: UInt64
        var host: String
        var port: UInt16
        /// What was offered instead of the context's protocols: whoever selects the server by that
        /// does not get another one's session. Otherwise the protocol is not a session's: it is
        /// selected anew whenever one is resumed (RFC 7301 §3.1).
        var offer: ProtocolOffer?
    }

    /// A session in its ASN.1 form, so that no library object is shared between threads.
    struct Session {
        var stored: StoredSession
        /// Seconds since 1970; not resumed from then on.
        var expires: Int64
        /// Whether it may be used for one connection only (RFC 8446 §C.4).
        var isSingleUse: Bool
        /// The findings of the full handshake.
        var facts: TrustFacts
    }

    package let limits: TLSSessionLimits
    /// The sessions of each server, oldest first.
    private let servers: Locked<ShareTable<Key, [Session]>>

    package init(limits: TLSSessionLimits = TLSSessionLimits()) {
        self.limits = limits
        servers = Locked(ShareTable(limit: limits.sessions))
    }

    /// The number of sessions.
    package var count: Int { servers.withLock { $0.weight } }

    /// Keeps a session as the server's newest.
    ///
    /// - Parameter client: the client whose request the connection was made for, or `nil` if none.
    func insert(_ session: Session, for key: Key, of client: IPNetwork? = nil) {
        guard limits.sessions > 0, limits.sessionsPerServer > 0 else { return }
        servers.withLock { servers in
            var sessions = servers.remove(key) ?? []
            sessions.append(session)
            if sessions.count > limits.sessionsPerServer { sessions.removeFirst() }
            servers.set(sessions, for: key, of: client, weight: sessions.count)
        }
    }

    /// The newest session that can be resumed at `now` (seconds since 1970), or `nil`. Removes the
    /// session if it is single-use, and expired ones.
    func take(for key: Key, now: Int64) -> Session? {
        servers.withLock { servers in
            guard var sessions = servers.use(key) else { return nil }
            sessions.removeAll { $0.expires <= now }
            let session = sessions.last
            if let session, session.isSingleUse { sessions.removeLast() }
            if sessions.isEmpty {
                servers.remove(key)
            } else {
                servers.update(sessions, for: key, weight: sessions.count)
            }
            return session
        }
    }

    /// Drops the sessions of a context that is gone.
    func removeSessions(ofContext context: UInt64) {
        servers.withLock { $0.removeAll { key, _ in key.context == context } }
    }
}
