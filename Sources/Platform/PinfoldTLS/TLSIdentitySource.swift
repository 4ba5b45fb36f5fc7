/// The server's identity for a client whose first message has arrived.
package enum TLSIdentityAnswer {
    /// Continue the handshake with this certificate.
    case present(TLSServerIdentity)
    /// Not known yet: the handshake waits until ``TLSServerConnection/answer(_:)`` is called.
    case later
    /// There is none for this client: end the handshake with this alert.
    case refuse(TLSAlert)
}

/// Where the certificates of a server's connections come from.
package protocol TLSIdentitySource: AnyObject {
    /// Chooses a certificate for a client, once per connection: not again for a client that has to
    /// resend its first message (RFC 8446 §4.1.4). Called within ``TLSConnection/handshake()``, on
    /// the connection's thread.
    ///
    /// - Parameter connection: for a later answer. Do not keep it longer than that takes.
    func identity(
        for hello: TLSClientHello, on connection: TLSServerConnection
    ) -> TLSIdentityAnswer
}

/// The certificates of a server, several by name: immutable, safe to use from any number of
/// threads.
///
/// An exact match of the name is preferred over a wildcard for its first label (RFC 9525 §6.3). Of
/// several certificates for a name, the first whose kind of key the client can verify is presented,
/// so that an RSA certificate can accompany an ECDSA one. A client that names nothing, or no known
/// name, gets the first certificate.
package final class TLSIdentityList: TLSIdentitySource, Sendable {
    private let identities: [TLSServerIdentity]
    /// The positions of the certificates for each name, in lower case, wildcards as `*.parent`.
    private let positions: [String: [Int]]

    /// - Parameter identities: at least one; the first is the default.
    package init(_ identities: [TLSServerIdentity]) {
        precondition(!identities.isEmpty, "a server has a certificate")
        self.identities = identities
        var positions: [String: [Int]] = [:]
        for (position, identity) in identities.enumerated() {
            for name in Set(identity.names) { positions[name, default: []].append(position) }
        }
        self.positions = positions
    }

    package func identity(
        for hello: TLSClientHello, on connection: TLSServerConnection
    ) -> TLSIdentityAnswer {
        .present(choose(for: hello))
    }

    /// The certificate for a client.
    func choose(for hello: TLSClientHello) -> TLSServerIdentity {
        let matching = hello.serverName.flatMap { positions(of: $0) } ?? []
        let usable = matching.first { hello.canVerify(identities[$0]) }
        if let best = usable ?? matching.first { return identities[best] }
        // One for another name: the first one's names are better than none that is usable.
        let sameNames = identities.first { other in
            hello.canVerify(other) && other.names == identities[0].names
        }
        return hello.canVerify(identities[0]) ? identities[0] : sameNames ?? identities[0]
    }

    private func positions(of name: String) -> [Int]? {
        if let exact = positions[name] { return exact }
        guard let dot = name.firstIndex(of: ".") else { return nil }
        return positions["*" + name[dot...]]
    }
}

extension TLSClientHello {
    fileprivate func canVerify(_ identity: TLSServerIdentity) -> Bool {
        identity.hasECDSAKey ? offersECDSA : true
    }
}
