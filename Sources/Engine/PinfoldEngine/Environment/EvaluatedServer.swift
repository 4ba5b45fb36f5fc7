import HTTPCore
import PinfoldConfiguration
import PinfoldMetrics
import PinfoldTLS
import Trust

/// A server as described in reports on its verification: who it should have been, and what it was
/// verified against.
struct EvaluatedServer {
    let host: String
    let port: UInt16
    /// The address that it was connected to; `nil` if unknown.
    let endpoint: Endpoint?
    /// The label of its metrics.
    let route: LabelIndex
    /// The labels' indexes of the pinsets that apply, in the order of evaluation.
    let pinsets: [LabelIndex]
    let policy: PolicySnapshot
    /// For whom it was connected to; `nil` for nobody, or if it is unknown.
    let client: IPNetwork?
    private let entryIndex: Int?
    /// The port that the request named, by which the host entry was found.
    private let requestedPort: UInt16

    init(_ origin: Origin, at endpoint: Endpoint, for client: IPNetwork? = nil) {
        self.client = client
        (host, port) = (origin.key.host, origin.key.port)
        self.endpoint = endpoint
        route = origin.route
        policy = origin.policy
        entryIndex = origin.entryIndex
        requestedPort = origin.key.requestedPort
        pinsets = policy.pinsets(entryIndex: entryIndex)
    }

    /// The server of a tunnel.
    init(
        _ authority: BoundAuthority, _ policy: PolicySnapshot, entryIndex: Int?,
        at endpoint: Endpoint? = nil, for client: IPNetwork? = nil
    ) {
        self.client = client
        (host, port) = (authority.host, authority.port)
        self.endpoint = endpoint
        route = policy.route(entryIndex: entryIndex)
        self.policy = policy
        self.entryIndex = entryIndex
        requestedPort = authority.port
        pinsets = policy.pinsets(entryIndex: entryIndex)
    }

    /// The pinset of the configuration that it failed, or `nil` if it failed none.
    func pinset(of failure: TrustError) -> PinsetEntry? {
        failure.pinsetIndex.flatMap { pinset(at: $0) }
    }

    /// An applicable pinset.
    /// - Parameter position: its position in ``pinsets``.
    func pinset(at position: Int) -> PinsetEntry? {
        guard let entryIndex else { return nil }
        let pinsets = policy.configuration.hosts.entries[entryIndex].pinsets
        return pinsets.indices.contains(position)
            ? policy.configuration.pinsets[pinsets[position]] : nil
    }

    /// The counts of an applicable pinset's pins, by the pins' indexes in the configuration by
    /// which the server was verified.
    /// - Parameter position: the position of the pinset in ``pinsets``.
    func pinCounts(at position: Int) -> [EventCounts<PinEvent>] {
        guard let entryIndex else { return [] }
        return policy.pinCounts[
            policy.configuration.hosts.entries[entryIndex].pinsets[position]]
    }

    /// Whether the keys that it shows are remembered.
    var isObserved: Bool { policy.configuration.observesPins(entry: entryIndex) }

    /// Whether its host has pins.
    var isPinned: Bool { policy.configuration.isPinned(entry: entryIndex) }

    /// The pattern by which the host entry applies.
    var matchedPattern: HostPattern? {
        entryIndex.flatMap { index in
            policy.configuration.hosts.entries[index].match.first {
                $0.matches(host: host.utf8.span, port: requestedPort)
            }
        }
    }
}

/// The chain that a server presented, for reports; evaluated only if there is one.
package struct ShownChain {
    /// DER, the leaf first.
    package let certificates: [[UInt8]]
    /// The context by which it was verified.
    package let context: TLSClientContext

    init(_ certificates: [[UInt8]], _ context: TLSClientContext) {
        self.certificates = certificates
        self.context = context
    }

    /// All that a connection's server presented, which is encoded anew. Not for a resumed session.
    init(allOf tls: TLSClientConnection) {
        context = tls.context
        certificates = tls.presented.isEmpty ? tls.sentCertificates : tls.presented
    }

    /// The chain presented by a connection's server. A resumed session has only kept the server's
    /// own certificate.
    init(of tls: TLSClientConnection) {
        context = tls.context
        certificates =
            tls.presented.isEmpty ? tls.certificateDER.map { [$0] } ?? [] : tls.presented
    }
}
