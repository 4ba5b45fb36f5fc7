import Authentication
import EventLoop
import HTTPCore
import PinfoldConfiguration
import PinfoldMetrics
import ProxyProtocols

/// The fixed upstream of a reverse listener.
package struct ReverseUpstream: Sendable, Hashable {
    /// What else tells servers apart, in one byte: it is compared for each request.
    private struct Traits: OptionSet, Hashable {
        let rawValue: UInt8
        static let isSecure = Traits(rawValue: 1)
        static let isOnUnixSocket = Traits(rawValue: 2)
        static let getsHeaderV1 = Traits(rawValue: 4)
        static let getsHeaderV2 = Traits(rawValue: 8)
    }

    /// Its host, or the path of its Unix socket.
    private let place: String
    package let port: UInt16
    private let traits: Traits
    /// Which fields tell it about the client's side.
    package var forwarding = ForwardingConfiguration()

    /// The host by which it is known.
    package var host: String {
        traits.contains(.isOnUnixSocket) ? UpstreamOrigin.localName : place
    }
    package var isSecure: Bool { traits.contains(.isSecure) }
    /// The path of its Unix socket; `nil` if it is reached by its host.
    package var unixPath: String? { traits.contains(.isOnUnixSocket) ? place : nil }
    /// The form of the PROXY header with which connections to it begin; `nil` for none.
    var proxyHeader: ProxyHeader.Version? {
        if traits.contains(.getsHeaderV1) { return .v1 }
        return traits.contains(.getsHeaderV2) ? .v2 : nil
    }

    package init(
        host: String, port: UInt16, isSecure: Bool,
        forwarding: ForwardingConfiguration = ForwardingConfiguration()
    ) {
        place = host
        self.port = port
        traits = isSecure ? .isSecure : []
        self.forwarding = forwarding
    }

    /// The upstream of a configuration.
    /// - Parameter header: how its connections tell it who the client is.
    package init(
        _ upstream: UpstreamOrigin, forwarding: ForwardingConfiguration,
        telling header: UpstreamProxyProtocol
    ) {
        place = upstream.unixPath ?? upstream.host
        port = upstream.port
        self.forwarding = forwarding
        var traits: Traits = upstream.scheme == .https ? .isSecure : []
        if upstream.unixPath != nil { traits.insert(.isOnUnixSocket) }
        switch header {
        case .none: break
        case .v1: traits.insert(.getsHeaderV1)
        case .v2: traits.insert(.getsHeaderV2)
        }
        self.traits = traits
    }
}

extension ProxyHeader.Version {
    /// The form that a configuration names; `nil` for none.
    init?(_ choice: UpstreamProxyProtocol) {
        switch choice {
        case .none: return nil
        case .v1: self = .v1
        case .v2: self = .v2
        }
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
        /// One of several servers.
        case balanced(BalancedRoute)
        /// The one authority that a tunnel was opened to, over TLS.
        case bound(BoundAuthority)
        /// The destinations that they name, through a proxy.
        case proxied(ProxyRoute)
        /// The gateway itself.
        case admin
        /// Nothing yet: they only prove who will ask for something (RFC 1929).
        case proof
        /// The hosts that they name, of clients that do not know of the gateway.
        case transparent
    }

    /// What its clients speak.
    package enum ClientProtocol: Sendable, Equatable {
        case http
        /// SOCKS 5, whose requests are CONNECT (RFC 1928).
        case socks5
        /// What they would say to the servers that they connect to.
        case transparent(OriginalAddressSource)
    }

    package let name: String
    /// The index of its name in metrics and the access log (`RouteLabels`).
    package let label: LabelIndex
    /// The address that clients connect to.
    package let endpoint: Endpoint
    /// The path of the Unix socket that clients connect to, in place of the address; `nil` for
    /// most.
    package let path: String?
    /// The address that the one client whose requests these are has connected to, as the PROXY
    /// header says that its connection began with; `nil` without one.
    package let destination: Endpoint?
    /// The process of the one client whose requests these are, on a Unix socket.
    package let process: PeerProcess?
    package let role: Role
    /// What its clients speak.
    package let speaks: ClientProtocol
    /// Whether clients that want it speak HTTP/2. With TLS, ALPN decides; in clear text, how they
    /// begin.
    package let takesHTTP2: Bool
    /// TLS with its clients; `nil` for clear text.
    package let tls: ClientTLS?
    /// What is known from the handshake of the one client whose requests these are; `nil` for clear
    /// text, and before the handshake.
    package let session: ClientSession?
    /// From where connections must begin with a PROXY header, and no others are accepted; `nil` if
    /// none may.
    package let proxySenders: [IPNetwork]?
    /// The methods by which its clients may prove who they are; empty if they need not.
    package let methods: AuthenticationMethods
    /// Who asked for the tunnel whose requests these are; `nil` if nobody had to say.
    package let identity: Identity?
    /// Where the connection of the one client whose requests these are was going; `nil` unless it
    /// came through a transparent listener.
    package let original: OriginalDestination?
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
    /// Whether servers are spoken to over HTTP/1.1, whatever else they speak.
    package let speaksOnlyHTTP1: Bool

    package init(
        name: String, label: LabelIndex, endpoint: Endpoint, role: Role,
        takesHTTP2: Bool = false, tls: ClientTLS? = nil, session: ClientSession? = nil,
        methods: AuthenticationMethods = [], identity: Identity? = nil,
        isIntermediary: Bool = true, acceptsAnyStored: Bool = false,
        speaksOnlyHTTP1: Bool = false, path: String? = nil,
        process: PeerProcess? = nil, proxySenders: [IPNetwork]? = nil,
        speaks: ClientProtocol = .http, original: OriginalDestination? = nil,
        destination: Endpoint? = nil
    ) {
        self.destination = destination
        self.speaks = speaks
        self.original = original
        self.proxySenders = proxySenders
        self.path = path
        self.process = process
        self.methods = methods
        self.identity = identity
        self.isIntermediary = isIntermediary
        self.acceptsAnyStored = acceptsAnyStored && !isIntermediary
        self.speaksOnlyHTTP1 = speaksOnlyHTTP1
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
        with(role, session, process, identity, original)
    }

    /// The same ingress for the requests of one process on a Unix socket.
    package func of(_ process: PeerProcess) -> Ingress {
        with(role, session, process, identity, original)
    }

    /// The same ingress for the request of one client that has proved who it is.
    package func of(_ identity: Identity) -> Ingress {
        with(role, session, process, identity, original)
    }

    /// The same ingress for the requests of one connection that was going elsewhere.
    package func of(_ original: OriginalDestination) -> Ingress {
        with(role, session, process, identity, original)
    }

    /// The same ingress for the requests of one client that has connected to another address.
    package func of(clientTo destination: Endpoint) -> Ingress {
        with(role, session, process, identity, original, destination)
    }

    /// The same ingress for the proof that comes before the request.
    package var forProof: Ingress { with(.proof, session, process, identity, original) }

    private func with(
        _ role: Role, _ session: ClientSession?, _ process: PeerProcess?, _ identity: Identity?,
        _ original: OriginalDestination?, _ destination: Endpoint? = nil
    ) -> Ingress {
        Ingress(
            name: name, label: label, endpoint: endpoint, role: role, takesHTTP2: takesHTTP2,
            tls: tls, session: session, methods: methods, identity: identity,
            isIntermediary: isIntermediary, acceptsAnyStored: acceptsAnyStored,
            speaksOnlyHTTP1: speaksOnlyHTTP1, path: path,
            process: process, proxySenders: proxySenders, speaks: speaks, original: original,
            destination: destination ?? self.destination)
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
            methods == former.methods, proxySenders == former.proxySenders,
            speaks == former.speaks
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
