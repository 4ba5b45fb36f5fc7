import COpenSSL
import Locking
import Trust

/// Where trust anchors come from.
package enum RootSource: Hashable, Sendable {
    /// The system's, from the library's default file and folder (`SSL_CERT_FILE`, `SSL_CERT_DIR`).
    case system
    /// A file's contents, PEM or DER; `name` is for error messages.
    case file(name: String, contents: [UInt8])
}

/// A set of trust anchors, loaded once and shared by the contexts that use it. Any certificate in
/// it may end a chain, even an intermediate or a leaf.
package final class TrustRoots: @unchecked Sendable {
    // Complete before `store` returns it; the library locks its lookups in the system's folder.
    private let anchors: OpaquePointer
    /// Whether the system's anchors belong to it, but have not been read yet.
    private let awaitsSystem: Locked<Bool>
    /// The subjects of those that come from files, for clients to choose their certificate by.
    private let names: OpaquePointer
    /// The fingerprints of those that come from files.
    private var own: Set<SHA256Digest> = []

    /// Loads all sources. An empty list trusts nobody.
    ///
    /// - Parameter readsSystem: whether the system's anchors are read now, rather than when they
    ///   are first needed: that takes as long as dozens of handshakes, and most of a megabyte. If
    ///   reading fails later, which happens only for lack of memory, none of them is trusted.
    package init(
        _ sources: [RootSource], readsSystem: Bool = true
    ) throws(TLSContextError) {
        guard let anchors = X509_STORE_new(), let names = pinfold_sk_X509_NAME_new() else {
            throw .library(ErrorQueue.drain())
        }
        self.anchors = anchors
        self.names = names
        awaitsSystem = Locked(sources.contains(.system))
        for case .file(let name, let contents) in sources {
            try add(name: name, contents: contents)
        }
        if readsSystem, let error = readSystem() { throw error }
    }

    deinit {
        X509_STORE_free(anchors)
        pinfold_sk_X509_NAME_free(names)
    }

    /// Whether none of the system's anchors is still to be read.
    var hasReadSystem: Bool { awaitsSystem.withLock { !$0 } }

    /// The anchors at which chains end.
    var store: OpaquePointer {
        readSystem()
        return anchors
    }

    /// Reads the system's anchors, if that has not been done yet. Callers wait meanwhile.
    @discardableResult
    package func readSystem() -> TLSContextError? {
        awaitsSystem.withLock { awaitsSystem in
            guard awaitsSystem else { return nil }
            guard X509_STORE_set_default_paths(anchors) == 1 else {
                return .library(ErrorQueue.drain())
            }
            awaitsSystem = false
            // A default file that does not exist leaves an error in the queue, and no other trace.
            ERR_clear_error()
            return nil
        }
    }

    /// A copy of the subjects of the anchors that come from files; `nil` only if the library is out
    /// of memory.
    func subjects() -> OpaquePointer? { SSL_dup_CA_list(names) }

    /// The locations of the system's anchors, the file and then the folder: the environment
    /// variable that names it, and the path used without that variable.
    package static var systemLocations: [(variable: String, standard: String)] {
        [
            (
                String(cString: X509_get_default_cert_file_env()),
                String(cString: X509_get_default_cert_file())
            ),
            (
                String(cString: X509_get_default_cert_dir_env()),
                String(cString: X509_get_default_cert_dir())
            ),
        ]
    }

    private func add(name: String, contents: [UInt8]) throws(TLSContextError) {
        let certificates: [[UInt8]]
        do throws(PinError) {
            certificates = try Pin.decodeCertificates(file: contents)
        } catch {
            throw .rootsFile(name: name, error)
        }
        for (index, der) in certificates.enumerated() {
            let certificate: Certificate
            do throws(CertificateError) {
                certificate = try Certificate(der: der)
            } catch {
                throw .root(name: name, index: index, error)
            }
            guard X509_STORE_add_cert(anchors, certificate.pointer) == 1 else {
                throw .library(ErrorQueue.drain())
            }
            guard let name = X509_NAME_dup(X509_get_subject_name(certificate.pointer)),
                pinfold_sk_X509_NAME_push(names, name) > 0
            else { throw .library(ErrorQueue.drain()) }
            if let fingerprint = X509View(certificate.pointer).fingerprint {
                own.insert(fingerprint)
            }
        }
    }

    /// The anchors with a name (X509_NAME), or `nil` if there are none.
    func anchors(named name: OpaquePointer?) -> CertificateStack? {
        guard let context = X509_STORE_CTX_new() else { return nil }
        defer {
            X509_STORE_CTX_free(context)
            ErrorQueue.clear()
        }
        guard X509_STORE_CTX_init(context, store, nil, nil) == 1,
            let found = X509_STORE_CTX_get1_certs(context, name)
        else { return nil }
        let anchors = CertificateStack(owning: found)
        return anchors.count > 0 ? anchors : nil
    }

    /// Whether an anchor comes from a file, rather than from the system's store.
    func isOwn(_ anchor: OpaquePointer) -> Bool {
        // Without a file there is nothing to compare.
        guard !own.isEmpty, let fingerprint = X509View(anchor).fingerprint else { return false }
        return own.contains(fingerprint)
    }
}

/// The system's store, for checking whether a certificate belongs to it. Read on first use.
enum SystemStore {
    private static let roots = try? TrustRoots([.system])

    static func contains(_ certificate: OpaquePointer) -> Bool {
        guard let stack = roots?.anchors(named: X509_get_subject_name(certificate)) else {
            return false
        }
        return (0..<stack.count).contains { index in
            stack[index].map { X509_cmp($0, certificate) == 0 } ?? false
        }
    }
}
