/// The keys of all issued certificates: one of each kind, made once.
final class LeafKeys {
    private let ecdsa: PrivateKey
    /// Made on first use: it takes a tenth of a second or more.
    private var rsa: PrivateKey?

    init() throws(LibraryError) { ecdsa = try PrivateKey(generating: .ecdsaP256) }

    func key(_ kind: CertificateKeyKind) throws(LibraryError) -> PrivateKey {
        switch kind {
        case .ecdsaP256: return ecdsa
        case .rsa2048:
            if let rsa { return rsa }
            let made = try PrivateKey(generating: kind)
            rsa = made
            return made
        }
    }
}

/// The issuer's thread. Created by the thread that starts it, and confined to its own from then on.
final class IssuerThread {
    private let core: IssuerCore
    private let keys: LeafKeys

    init(core: IssuerCore, keys: LeafKeys) {
        self.core = core
        self.keys = keys
    }

    /// Signs until the issuer is closed.
    func run() {
        while let request = core.take() {
            let now = core.options.clock()
            core.finish(request, issue(request, now: now), now: now)
        }
    }

    private func issue(
        _ request: CertificateRequest, now: Int64
    ) -> Result<IssuedCertificate, IssuanceError> {
        do throws(IssuanceError) {
            return .success(
                try request.authority.issue(request, key: key(request.keyKind), now: now))
        } catch {
            return .failure(error)
        }
    }

    private func key(_ kind: CertificateKeyKind) throws(IssuanceError) -> PrivateKey {
        do {
            return try keys.key(kind)
        } catch {
            throw .library(error.text)
        }
    }
}
