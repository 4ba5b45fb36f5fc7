import Authentication
import EventLoop
import HTTPCore
import PinfoldConfiguration
import PinfoldMetrics

/// The fixed upstream of a reverse listener.
package struct ReverseUpstream: Sendable, Hashable {
    package let host: String
    package let port: UInt16
    package let isSecure: Bool
    /// Which fields tell it about the client's side.
    package var forwarding = ForwardingConfiguration()

    package init(
        host: String, port: UInt16, isSecure: Bool,
        forwarding: ForwardingConfiguration = ForwardingConfiguration()
    ) {
        self.host = host
        self.port = port
        self.isSecure = isSecure
        self.forwarding = forwarding
    }
}

/// Where requests come from, and what follows from that: all that an exchange knows about it.
///
/// A listener is one source of ingresses; a tunnel whose content the gateway reads is another.
package final class Ingress {
    /// What its requests are for.
    package enum Role: Sendable, Equatable {
        /// The destinations that they name.
        case forward
        case reverse(ReverseUpstream)
        /// The one authority that a tunnel was opened to, over TLS.
        case bound(BoundAuthority)
        /// The destinations that they name, through a proxy.
        case proxied(ProxyRoute)
        /// The gateway itself.
        case admin
    }

    package let name: String
    /// The index of its name in metrics and the access log (`RouteLabels`).
    package let label: LabelIndex
    /// The address that clients connect to.
    package let endpoint: Endpoint
    /// The path of the Unix socket that clients connect to, in place of the address; `nil` for
    /// most.
    package let path: String?
    /// The process of the one client whose requests these are, on a Unix socket.
    package let process: PeerProcess?
    package let role: Role
    /// Whether clients that want it speak HTTP/2. With TLS, ALPN decides; in clear text, how they
    /// begin.
    package let takesHTTP2: Bool
    /// TLS with its clients; `nil` for clear text.
    package let tls: ClientTLS?
    /// What is known from the handshake of the one client whose requests these are; `nil` for clear
    /// text, and before the handshake.
    package let session: ClientSession?
    /// The methods by which its clients may prove who they are; empty if they need not.
    package let methods: AuthenticationMethods
    /// Who asked for the tunnel whose requests these are; `nil` if nobody had to say.
    package let identity: Identity?
    /// Whom the client's certificate stood for when that was last looked up.
    private var certified: (identity: Identity?, store: CredentialStore)?
    /// Whether requests count as traffic; those to the administration do not.
    package let isCounted: Bool
    /// Whether requests come from elsewhere, so that forwarded messages get Via (RFC 9110 §7.6.3);
    /// if false, they are this program's own.
    package let isIntermediary: Bool
    /// Whether stored responses are used whatever their age, and whatever their server said about
    /// that. Never so for an intermediary: other programs' requests cannot ask for it.
    package let acceptsAnyStored: Bool

    package init(
        name: String, label: LabelIndex, endpoint: Endpoint, role: Role,
        takesHTTP2: Bool = false, tls: ClientTLS? = nil, session: ClientSession? = nil,
        methods: AuthenticationMethods = [], identity: Identity? = nil,
        isIntermediary: Bool = true, acceptsAnyStored: Bool = false, path: String? = nil,
        process: PeerProcess? = nil
    ) {
        self.path = path
        self.process = process
        self.methods = methods
        self.identity = identity
        self.isIntermediary = isIntermediary
        self.acceptsAnyStored = acceptsAnyStored && !isIntermediary
        self.name = name
        self.label = label
        self.endpoint = endpoint
        self.role = role
        self.takesHTTP2 = takesHTTP2
        self.tls = tls
        self.session = session
        isCounted = role != .admin
    }

    /// The same ingress for the requests of one client with TLS.
    package func of(_ session: ClientSession) -> Ingress {
        Ingress(
            name: name, label: label, endpoint: endpoint, role: role, takesHTTP2: takesHTTP2,
            tls: tls, session: session, methods: methods, identity: identity,
            isIntermediary: isIntermediary, acceptsAnyStored: acceptsAnyStored, path: path,
            process: process)
    }

    /// The same ingress for the requests of one process on a Unix socket.
    package func of(_ process: PeerProcess) -> Ingress {
        Ingress(
            name: name, label: label, endpoint: endpoint, role: role, takesHTTP2: takesHTTP2,
            tls: tls, session: session, methods: methods, identity: identity,
            isIntermediary: isIntermediary, acceptsAnyStored: acceptsAnyStored, path: path,
            process: process)
    }

    /// Whom the client's certificate stands for, if that may prove who it is.
    func certifiedIdentity(in store: CredentialStore, at now: Int64) -> Identity? {
        guard methods.contains(.certificate), let certificate = session?.certificate else {
            return nil
        }
        if certified?.store !== store {
            certified = (store.identity(of: certificate.names, until: certificate.end), store)
        }
        guard let identity = certified?.identity, identity.isValid(at: now) else { return nil }
        return identity
    }

    /// Whether a client that came in through another ingress would also be admitted by this one,
    /// without further requirements.
    package func succeeds(_ former: Ingress) -> Bool {
        guard endpoint == former.endpoint, path == former.path, role == former.role,
            methods == former.methods
        else {
            return false
        }
        // What they were told that they may speak.
        guard takesHTTP2 || !former.takesHTTP2 else { return false }
        switch (tls, former.tls) {
        case (nil, nil): return true
        case (let now?, let before?):
            return now.configuration.admits(connectionsOf: before.configuration)
        case (nil, _?), (_?, nil): return false
        }
    }
}

/// The authority that all requests of a tunnel are for (RFC 9110 §7.4).
package struct BoundAuthority: Sendable, Hashable, CustomStringConvertible {
    /// Lower case, an address without brackets.
    package let host: String
    package let port: UInt16

    package init(host: String, port: UInt16) {
        self.host = host
        self.port = port
    }

    package var description: String {
        HostText.text(host, port: port)
    }

    /// Whether an authority is this one; `port` is `nil` if it names none.
    package func isNamed(by host: Span<UInt8>, port: UInt16?) -> Bool {
        host.equalsIgnoringCase(self.host.utf8.span)
            && (port ?? Scheme.https.defaultPort) == self.port
    }
}
