import HTTPCore
import Locking
import PinfoldConfiguration
import PinfoldTLS
import Trust

/// The certificates that a server presented in a handshake, and what was decided about them.
/// Immutable; every exchange with the server that is held for operators has a reference to it.
package final class ServerChain: Sendable {
    /// At most so many certificates and bytes of one server are kept; the rest is left out.
    static let maximumCertificates = 8
    static let maximumBytes = 12 * 1024
    private static let maximumProblemBytes = 1024

    /// What was decided.
    package enum Verdict: String, Sendable, CaseIterable {
        case trusted
        /// A pinset that only reports would have refused it.
        case reported
        case refused
    }

    /// The pins of a pinset that the server matched.
    package struct Match: Sendable {
        package let pinset: String
        /// As error messages have them: `sha256/…`, or fingerprints.
        package let pins: [String]
    }

    /// In DER, as the server sent them: the server's own first.
    package let certificates: [[UInt8]]
    /// Whether the server sent more than is kept.
    package let isCut: Bool
    /// When it was first verified with this result, in milliseconds since 1970.
    package let time: Int64
    /// The same of the monotonic clock.
    let moment: Int64
    package let verdict: Verdict
    package let matches: [Match]
    /// Why it was refused, or would have been; `nil` if it was not.
    package let problem: String?
    /// The pinset that refused it, or would have.
    package let pinset: String?
    /// Whether that is because it has none of the pinned keys or certificates: not if the chain is
    /// not valid, or the pinset has expired.
    package let hasOtherPins: Bool
    fileprivate let basis: Basis

    /// By what it was judged: another handshake with the same basis has the same result.
    fileprivate struct Basis: Equatable {
        var generation: UInt64
        var facts: [PinsetOutcome]
        var failure: TrustError?
    }

    fileprivate init(_ server: EvaluatedServer, _ sent: [[UInt8]], _ basis: Basis, at time: Times) {
        certificates = Self.kept(of: sent)
        isCut = certificates.count < sent.count
        self.time = time.wall
        moment = time.monotonic
        self.basis = basis
        var failure = basis.failure
        var matches: [Match] = []
        for (position, outcome) in basis.facts.enumerated() {
            switch outcome {
            case .passed(let found):
                guard let match = Match(found, of: server, at: position) else { continue }
                matches.append(match)
            case .reported(let reported): failure = failure ?? reported
            }
        }
        self.matches = matches
        verdict = basis.failure != nil ? .refused : failure != nil ? .reported : .trusted
        problem = failure.map {
            String(decoding: "\($0)".utf8.prefix(Self.maximumProblemBytes), as: UTF8.self)
        }
        pinset = failure?.pinset
        hasOtherPins = failure?.kind == .noPinMatches
    }

    private static func kept(of sent: [[UInt8]]) -> [[UInt8]] {
        var bytes = 0
        return Array(
            sent.prefix(maximumCertificates).prefix { certificate in
                bytes += certificate.count
                return bytes <= maximumBytes
            })
    }

    /// Whether a handshake with these certificates and this result is no news.
    fileprivate func isSame(as sent: [[UInt8]], _ basis: Basis) -> Bool {
        self.basis == basis && certificates == Self.kept(of: sent)
    }

    fileprivate struct Times {
        var wall: Int64
        var monotonic: Int64
    }
}

extension ServerChain.Match {
    /// `nil` if no pin was needed.
    fileprivate init?(_ matches: PinMatches, of server: EvaluatedServer, at position: Int) {
        guard !matches.isEmpty, let entry = server.pinset(at: position) else { return nil }
        let texts = entry.pinset.distinguishedPins
        pinset = entry.pinset.name
        pins = matches.indexes.map { texts.indices.contains($0) ? texts[$0] : "another pin" }
    }
}

/// What servers presented in their latest handshakes, for whoever looks at an exchange. It is noted
/// once per handshake, which takes a thousand times as long, and looked up for each exchange that
/// is held, under a lock of all workers.
package final class ServerChains: Sendable {
    static let limit = 512

    private struct Key: Hashable {
        /// `host:port`, as messages name it.
        var server: String
        var endpoint: Endpoint?
    }

    private let chains = Locked(ShareTable<Key, ServerChain>(limit: ServerChains.limit))

    package init() {}

    /// A handshake has been judged.
    /// - Parameters:
    ///   - facts: what the pinsets found; empty if the server is refused.
    ///   - failure: why it is refused; `nil` if it is not.
    ///   - client: for whom the connection was made.
    ///   - leaf: the server's own certificate in DER.
    ///   - isResumed: whether the server has sent no certificates: they were in an earlier
    ///     handshake.
    ///   - sent: all that the server sent in this handshake, in DER; not asked for if it has sent
    ///     nothing, and what it sent before is known.
    func note(
        _ server: EvaluatedServer, _ facts: [PinsetOutcome], _ failure: TrustError?,
        for client: IPNetwork?, leaf: [UInt8], isResumed: Bool,
        at times: (wall: Int64, monotonic: Int64), sent: () -> [[UInt8]]
    ) {
        let basis = ServerChain.Basis(
            generation: server.policy.generation, facts: facts, failure: failure)
        let key = Key(
            server: "\(HostText.bracketed(server.host)):\(server.port)", endpoint: server.endpoint)
        let known = chains.withLock { $0.use(key) }
        var certificates = known?.certificates ?? []
        if !isResumed || certificates.first != leaf { certificates = sent() }
        if let known, known.isSame(as: certificates, basis) { return }
        let chain = ServerChain(
            server, certificates, basis,
            at: ServerChain.Times(wall: times.wall, monotonic: times.monotonic))
        chains.withLock { $0.set(chain, for: key, of: client) }
    }

    /// What a server presented the last time.
    /// - Parameter server: `host:port`.
    func latest(of server: String, at endpoint: Endpoint?) -> ServerChain? {
        chains.withLock { $0.value(of: Key(server: server, endpoint: endpoint)) }
    }
}

extension Environment {
    /// Keeps what a server presented, if anybody can look at it.
    /// - Parameter failure: why it is refused; `nil` if it is trusted.
    func keepChain(
        of tls: TLSClientConnection, _ server: EvaluatedServer, _ failure: TrustError? = nil
    ) {
        guard let chains = shared.serverChains else { return }
        // A connection whose server is refused has it from the verdict.
        guard let leaf = tls.presented.first ?? tls.certificateDER else { return }
        chains.note(
            server, failure == nil ? tls.facts?.outcomes ?? [] : [], failure, for: tls.client,
            leaf: leaf, isResumed: tls.isResumed, at: (wallMilliseconds, loop.monotonicNow)
        ) {
            tls.presented.isEmpty
                ? tls.sentCertificates(atMost: ServerChain.maximumCertificates + 1)
                : tls.presented
        }
    }

    /// The same for the server of a tunnel that is inspected.
    func keepChain(
        _ certificates: [[UInt8]], _ server: EvaluatedServer, _ facts: TrustFacts?,
        _ failure: TrustError? = nil, for client: IPNetwork?
    ) {
        guard let chains = shared.serverChains, let leaf = certificates.first else { return }
        chains.note(
            server, facts?.outcomes ?? [], failure, for: client, leaf: leaf, isResumed: false,
            at: (wallMilliseconds, loop.monotonicNow)
        ) { certificates }
    }
}

extension Exchange {
    /// Whether the certificates of its server were judged for it, or for the connection that it
    /// got.
    private var hasVerdict: Bool {
        if report.serverTLS != nil || tunnel?.inspection != nil { return true }
        switch remarks.fault?.reason {
        case .trust, .profile, .revocation: return true
        default: return false
        }
    }

    /// What its server presented when the connection was made; `nil` if it spoke no TLS with one,
    /// and if that is not known any more.
    package var serverChain: ServerChain? {
        guard hasVerdict, let chains = environment.shared.serverChains, let serverText,
            let chain = chains.latest(of: serverText, at: lastServer)
        else { return nil }
        // The server has presented something else on another connection since.
        if report.reusedConnection ?? false, chain.moment * 1000 > report.began { return nil }
        return chain
    }
}
