import COpenSSL
import Clocks
import HTTPCore
import Synchronization
import Trust

/// A security policy together with what is needed to apply it: trust anchors, pinned certificates
/// and the library's security level. It verifies the servers of live connections as well as
/// certificates from elsewhere. Immutable; safe to use from any number of threads at once.
package final class TrustVerifier: Sendable {
    let policy: ResolvedPinningPolicy
    let roots: TrustRoots
    /// The certificates of each pinset, in the policy's order.
    let pinsets: [PinsetCertificates]
    /// -1 if the connections' context has not been created yet.
    private let level: Atomic<Int32>
    /// The required strength of keys and signatures (SSL_CTX_set_security_level(3)).
    var securityLevel: Int32 {
        let level = level.load(ordering: .relaxed)
        return level < 0 ? Self.standardSecurityLevel : level
    }
    let profile: ChosenProfile
    /// The lists that certificates are checked against, or `nil` if revocation is not checked.
    let revocation: RevocationLists?
    /// Whether servers must staple an OCSP response that declares their certificate good.
    let requiresStaple: Bool
    /// Certificate Transparency requirements, or `nil` for none.
    let transparency: TransparencyPolicy?
    let transparencyKeys = TransparencyKeys()

    /// The security level of connections that allow no obsolete TLS version.
    static let standardSecurityLevel: Int32 = {
        guard let context = SSL_CTX_new(TLS_client_method()) else { return 2 }
        defer { SSL_CTX_free(context) }
        return SSL_CTX_get_security_level(context)
    }()

    /// - Parameters:
    ///   - policy: the pinsets; a pinset that no server can pass is allowed, and refuses all.
    ///   - roots: the trust anchors; shared between verifiers.
    ///   - securityLevel: the level of the connections whose servers are verified; `nil` if they
    ///     allow no obsolete TLS version, with the library's standard level until
    ///     ``take(securityLevel:)``.
    ///   - profile: requirements for chains beyond what the library verifies.
    ///   - revocation: the lists that chains are checked against; `nil` for none.
    ///   - requiresStaple: whether servers must staple an OCSP response.
    ///   - transparency: which logs must have promised to publish a server's certificate.
    /// - Throws: for a pin or an anchor that is not a certificate or key.
    package init(
        _ policy: PinningPolicy, roots: TrustRoots,
        securityLevel: Int32? = nil,
        profile: ChosenProfile = .byDefault, revocation: RevocationLists? = nil,
        requiresStaple: Bool = false, transparency: TransparencyPolicy? = nil
    ) throws(TLSContextError) {
        var certificates: [PinsetCertificates] = []
        for pinset in policy.pinsets {
            certificates.append(try PinsetCertificates(pinset))
        }
        self.policy = try TrustVerifier.resolve(policy)
        self.roots = roots
        level = Atomic(securityLevel ?? -1)
        self.profile = profile
        self.revocation = revocation
        self.requiresStaple = requiresStaple
        self.transparency = transparency
        pinsets = certificates
    }

    /// Sets the level of the context of the connections whose servers are verified, once it exists.
    func take(securityLevel: Int32) { level.store(securityLevel, ordering: .relaxed) }

    /// The policy with the digests of its pins.
    /// - Throws: for a pin that is not a certificate or key.
    package static func resolve(
        _ policy: PinningPolicy
    ) throws(TLSContextError) -> ResolvedPinningPolicy {
        try ResolvedPinningPolicy(policy) { (pin, index) throws(TLSContextError) in
            do throws(CertificateError) {
                switch pin {
                case .keyDigest(let digest):
                    return PinDigests(key: digest)
                case .certificateFingerprint(let digest):
                    return PinDigests(certificate: digest)
                case .publicKey(let der):
                    return PinDigests(key: try CertificateInspection.keyDigest(publicKey: der))
                case .certificate(let der):
                    let identity = try CertificateInspection(certificate: der).identity
                    return PinDigests(key: identity.key, certificate: identity.fingerprint)
                }
            } catch {
                throw .pin(pinset: policy.pinsets[index].name, error)
            }
        }
    }

    /// Verifies certificates outside a handshake, with the code that verifies live connections. The
    /// caller must know that the peer holds the leaf's private key.
    ///
    /// - Parameters:
    ///   - chain: what a server presents, the leaf first.
    ///   - host: the requested name or address, in any case, with or without a final dot or
    ///     brackets; `nil` to check no name.
    ///   - time: when the certificates must be valid and the pinsets not expired, in seconds since
    ///     1970; `nil` for now.
    ///   - staple: the OCSP response that the server stapled, in DER; `nil` for none.
    ///   - timestamps: Certificate Transparency timestamps that arrived outside the certificates.
    package func verify(
        _ chain: PresentedChain, host: String?, at time: Int64? = nil, staple: [UInt8]? = nil,
        timestamps: ServerTimestamps = ServerTimestamps()
    ) -> TrustVerdict {
        guard let leaf = chain.certificates[0],
            var evidence = PeerEvidence(
                certificate: leaf, sent: chain.certificates.pointer, verifier: self, time: time)
        else { return .refused(TrustError(.chain(.outOfMemory))) }
        let verdict = verdict(
            &evidence, host: host.map(TrustVerifier.normalized),
            now: time ?? Clock.wallSeconds(), timestamps: timestamps)
        guard requiresStaple, case .trusted(var facts) = verdict else { return verdict }
        switch evidence.stapleVerifier.verify(staple) {
        case .success(let end):
            facts.limit(to: end)
            return .trusted(facts)
        case .failure(let failure): return .refused(TrustError(.chain(.revocation(failure))))
        }
    }

    /// The chain from the leaf to one of the trust anchors, regardless of pinsets and name, or
    /// `nil` if there is no valid one.
    ///
    /// - Parameter time: when the certificates must be valid, in seconds since 1970; `nil` for now.
    package func verifiedChain(of chain: PresentedChain, at time: Int64? = nil) -> VerifiedChain? {
        guard let leaf = chain.certificates[0],
            var evidence = PeerEvidence(
                certificate: leaf, sent: chain.certificates.pointer, verifier: self, time: time)
        else { return nil }
        return try? evidence.evaluateChain(anchors: .roots(pinset: nil), host: nil).get()
    }

    /// A host in lower case, without brackets and without the final dot.
    package static func normalized(_ host: String) -> String {
        var bytes = host.utf8.map(ASCII.lowercased)
        if bytes.first == UInt8(ascii: "["), bytes.last == UInt8(ascii: "]") {
            bytes = Array(bytes.dropFirst().dropLast())
        }
        if bytes.count > 1, bytes.last == UInt8(ascii: ".") { bytes.removeLast() }
        return String(decoding: bytes, as: UTF8.self)
    }
}

/// The parsed certificates that a server presents. Immutable.
package struct PresentedChain: Sendable {
    /// The leaf first; at least one.
    let certificates: CertificateStack

    /// - Parameter der: each certificate's DER, the leaf first.
    /// - Throws: `.noCertificate` for an empty list, `.malformed` for what is no certificate, also
    ///   for one with bytes behind it.
    package init(der: [[UInt8]]) throws(ChainError) {
        guard !der.isEmpty else { throw .noCertificate }
        guard let stack = CertificateStack() else { throw .outOfMemory }
        for (index, bytes) in der.enumerated() {
            do throws(CertificateError) {
                let certificate = try Certificate(der: bytes)
                stack.append(certificate.pointer)
            } catch {
                throw .malformed(position: index + 1)
            }
        }
        guard stack.count == der.count else { throw .outOfMemory }
        certificates = stack
    }

    private init(_ certificates: CertificateStack) { self.certificates = certificates }

    /// These certificates followed by another's; `nil` only if the library is out of memory.
    package func adding(_ other: PresentedChain) -> PresentedChain? {
        guard let stack = CertificateStack() else { return nil }
        for part in [certificates, other.certificates] {
            for index in 0..<part.count {
                if let one = part[index] { stack.append(one) }
            }
        }
        return PresentedChain(stack)
    }
}

extension TLSClientContext {
    /// Verifies certificates outside a handshake, as a connection under this context would: see
    /// ``TrustVerifier/verify(_:host:at:staple:)``.
    ///
    /// - Parameters:
    ///   - chain: the DER of what a server presents, the leaf first. An empty list is refused as
    ///     `.noCertificate`, one that does not parse as `.malformed`.
    ///   - host: the requested name or address; `nil` to check no name.
    ///   - time: when the certificates must be valid, in seconds since 1970; `nil` for now.
    ///   - staple: the OCSP response that the server stapled, in DER; `nil` for none.
    ///   - timestamps: Certificate Transparency timestamps that arrived outside the certificates.
    package func verify(
        chain: [[UInt8]], host: String?, at time: Int64? = nil, staple: [UInt8]? = nil,
        timestamps: ServerTimestamps = ServerTimestamps()
    ) -> TrustVerdict {
        do throws(ChainError) {
            return verifier.verify(
                try PresentedChain(der: chain), host: host, at: time, staple: staple,
                timestamps: timestamps)
        } catch {
            return .refused(TrustError(.chain(error)))
        }
    }
}
