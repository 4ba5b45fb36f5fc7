import COpenSSL
import Trust

/// Searches for an accepted chain among all that lead from a leaf to an anchor through the
/// certificates that were sent, with backtracking and bounded work: the sender of the certificates
/// decides how many there are, and how they are intertwined.
struct PathSearch {
    /// The maximum number of certificates in a chain, including leaf and anchor.
    static let longestChain = 12
    /// The maximum number of signatures checked to find out who issued what.
    static let signatureChecks = 64
    /// The maximum number of whole chains verified.
    static let chainsVerified = 16
    /// The maximum number of certificates examined in total.
    static let steps = 4096

    private let builder: ChainBuilder
    /// What was sent, in its order.
    private let sent: [OpaquePointer]
    private var path: [OpaquePointer]
    /// Checked signatures: the issuer, the certificate, and whether the signature is valid.
    private var signatures: [Edge: Bool] = [:]
    private var chainsLeft = PathSearch.chainsVerified
    private var stepsLeft = PathSearch.steps
    /// What was wrong with the first chain that led to an anchor.
    private var failure: ChainError?
    /// What is known already, where all chains are looked for and not just one.
    private var known: CertificateStack?
    private var found: [BuiltChain] = []

    private struct Edge: Hashable {
        var subject: OpaquePointer
        var issuer: OpaquePointer
    }

    init(_ builder: ChainBuilder) {
        self.builder = builder
        path = [builder.leaf]
        var sent: [OpaquePointer] = []
        if let stack = builder.sent {
            for index in 0..<pinfold_sk_X509_num(stack) {
                if let one = pinfold_sk_X509_value(stack, index) { sent.append(one) }
            }
        }
        self.sent = sent
    }

    /// A chain that is accepted, or what is wrong with the first one that led to an anchor; nil:
    /// none did.
    mutating func run() -> Result<BuiltChain, ChainError>? {
        defer { ErrorQueue.clear() }
        if let chain = extend() { return .success(chain) }
        return failure.map { .failure($0) }
    }

    /// The other accepted chains. The search continues through anchors: an anchor that is an
    /// intermediate may itself be certified by another.
    mutating func others(than first: BuiltChain) -> [BuiltChain] {
        defer { ErrorQueue.clear() }
        known = first.certificates
        _ = extend()
        return found
    }

    /// Tries everything that can follow the path's last certificate.
    private mutating func extend() -> BuiltChain? {
        guard let last = path.last, path.count < Self.longestChain else { return nil }
        let anchors = anchors(above: last)
        for index in 0..<(anchors?.count ?? 0) {
            guard let anchor = anchors?[index], chainsLeft > 0, isIssued(last, by: anchor) else {
                continue
            }
            if let chain = verify(anchor: anchor) { return chain }
        }
        for candidate in sent {
            if let chain = extend(through: candidate, above: last) { return chain }
        }
        for index in 0..<(known == nil ? 0 : anchors?.count ?? 0) {
            guard let anchor = anchors?[index], !sent.contains(where: { X509_cmp($0, anchor) == 0 })
            else { continue }
            _ = extend(through: anchor, above: last)
        }
        return nil
    }

    private mutating func extend(
        through candidate: OpaquePointer, above last: OpaquePointer
    ) -> BuiltChain? {
        guard chainsLeft > 0, stepsLeft > 0 else { return nil }
        stepsLeft -= 1
        guard isNamed(candidate, asIssuerOf: last), !repeats(candidate),
            isIssued(last, by: candidate)
        else { return nil }
        path.append(candidate)
        defer { path.removeLast() }
        return extend()
    }

    /// The anchors with the name of a certificate's issuer, or `nil` if there are none.
    private func anchors(above certificate: OpaquePointer) -> CertificateStack? {
        if let trusted = builder.trusted {
            let stack = CertificateStack()
            for index in 0..<trusted.count {
                if let one = trusted[index], isNamed(one, asIssuerOf: certificate) {
                    stack?.append(one)
                }
            }
            return stack
        }
        // The anchors of a store belong to the verifier.
        return builder.verifier.roots.anchors(named: X509_get_issuer_name(certificate))
    }

    private func isNamed(
        _ issuer: OpaquePointer, asIssuerOf certificate: OpaquePointer
    ) -> Bool {
        X509_NAME_cmp(X509_get_subject_name(issuer), X509_get_issuer_name(certificate)) == 0
    }

    /// Whether a certificate's name and key are already on the path: a chain through the same
    /// entity twice proves nothing that the shorter one does not (RFC 4158 §2.4.2).
    private func repeats(_ candidate: OpaquePointer) -> Bool {
        path.contains { one in
            one == candidate
                || (X509_NAME_cmp(
                    X509_get_subject_name(one), X509_get_subject_name(candidate)) == 0
                    && EVP_PKEY_eq(X509_get0_pubkey(one), X509_get0_pubkey(candidate)) == 1)
        }
    }

    /// Whether the certificate was signed with the issuer's key.
    private mutating func isIssued(_ certificate: OpaquePointer, by issuer: OpaquePointer) -> Bool {
        let edge = Edge(subject: certificate, issuer: issuer)
        if let known = signatures[edge] { return known }
        guard signatures.count < Self.signatureChecks, let key = X509_get0_pubkey(issuer) else {
            return false
        }
        let isRight = X509_verify(certificate, key) == 1
        ErrorQueue.clear()
        signatures[edge] = isRight
        return isRight
    }

    private func isKnown(endingIn anchor: OpaquePointer) -> Bool {
        guard let known, known.count == path.count + 1 else { return false }
        return (path + [anchor]).indices.allSatisfy { index in
            known[index].map { X509_cmp($0, index < path.count ? path[index] : anchor) == 0 }
                ?? false
        }
    }

    /// Verifies the path with an anchor at its end.
    private mutating func verify(anchor: OpaquePointer) -> BuiltChain? {
        if isKnown(endingIn: anchor) { return nil }
        chainsLeft -= 1
        guard let intermediates = CertificateStack(), let anchors = CertificateStack(),
            let whole = CertificateStack()
        else { return nil }
        for one in path { whole.append(one) }
        for one in path.dropFirst() { intermediates.append(one) }
        whole.append(anchor)
        anchors.append(anchor)
        let attempt = builder.attempt(
            sent: intermediates.pointer, store: nil, trusted: anchors)
        switch attempt.result {
        case .success(let chain):
            guard known != nil else { return chain }
            found.append(chain)
            return nil
        case .failure(let reason):
            guard failure == nil else { return nil }
            failure = reason
            // The library recognizes no issuer whose key identifier does not match, and none if it
            // cannot parse the certificate.
            if reason.isMissingAnchor,
                let violation = builder.violation(of: whole, isTrusted: true)
            {
                failure = builder.failure(violation, in: whole)
            }
            return nil
        }
    }
}
