import COpenSSL
import Pinning

/// A list of revoked certificates (RFC 5280 §5), parsed. Immutable.
package final class RevocationList: @unchecked Sendable {
    /// Why a list cannot be used.
    package enum Problem: Error, Hashable, Sendable, CustomStringConvertible {
        case malformed
        /// It says only what has changed since another list.
        case delta
        /// It does not say until when it holds (RFC 5280 §5.1.2.5).
        case endless

        package var description: String {
            switch self {
            case .malformed: "a list that cannot be read"
            case .delta: "a delta CRL, which says only what has changed"
            case .endless: "a list without nextUpdate, so that it could never be found out of date"
            }
        }
    }

    let pointer: OpaquePointer
    /// When it was issued, in seconds since 1970.
    package let issued: Int64
    /// When there is a newer one at the latest, in seconds since 1970.
    package let ends: Int64

    /// - Parameter der: of one list; bytes after it are refused.
    package init(der: [UInt8]) throws(Problem) {
        let read = der.withUnsafeBufferPointer { buffer -> OpaquePointer? in
            var position = buffer.baseAddress
            let list = d2i_X509_CRL(nil, &position, buffer.count)
            guard let start = buffer.baseAddress, position == start + buffer.count else {
                X509_CRL_free(list)
                return nil
            }
            return list
        }
        ErrorQueue.clear()
        guard let read else { throw .malformed }
        pointer = read
        issued = X509View.seconds(X509_CRL_get0_lastUpdate(read)) ?? .max
        ends = X509_CRL_get0_nextUpdate(read).flatMap { X509View.seconds($0) } ?? .min
        if X509_CRL_get_ext_by_NID(read, NID_delta_crl, -1) >= 0 { throw .delta }
        if X509_CRL_get0_nextUpdate(read) == nil { throw .endless }
    }

    deinit { X509_CRL_free(pointer) }

    /// The issuer, for people: printable ASCII.
    package var issuer: String { X509View.text(X509_CRL_get_issuer(pointer)) }

    /// Whose certificates are revoked, and which: the same for a later list that adds none, so that
    /// what was obtained under one is as good under the other.
    package var content: [UInt8] {
        var content: [UInt8] = []
        func add(_ bytes: UnsafePointer<UInt8>?, _ count: Int) {
            withUnsafeBytes(of: UInt64(count).bigEndian) { content.append(contentsOf: $0) }
            content.append(contentsOf: UnsafeBufferPointer(start: bytes, count: count))
        }
        var name: UnsafePointer<UInt8>?
        var count = 0
        if X509_NAME_get0_der(X509_CRL_get_issuer(pointer), &name, &count) == 1 {
            add(name, count)
        }
        var serials: [[UInt8]] = []
        let revoked = X509_CRL_get_REVOKED(pointer)
        for index in 0..<max(0, pinfold_sk_X509_REVOKED_num(revoked)) {
            guard let one = pinfold_sk_X509_REVOKED_value(revoked, index),
                let serial = X509_REVOKED_get0_serialNumber(one)
            else { continue }
            serials.append(
                Array(
                    UnsafeBufferPointer(
                        start: ASN1_STRING_get0_data(serial),
                        count: Int(ASN1_STRING_length(serial)))))
        }
        serials.sort { $0.lexicographicallyPrecedes($1) }
        for serial in serials { serial.withUnsafeBufferPointer { add($0.baseAddress, $0.count) } }
        return content
    }

    /// Whether one of some anchors has the issuer's name, and whether its key made the signature.
    package func issuer(among roots: TrustRoots) -> (isKnown: Bool, hasSigned: Bool) {
        defer { ErrorQueue.clear() }
        guard let context = X509_STORE_CTX_new() else { return (false, false) }
        defer { X509_STORE_CTX_free(context) }
        guard X509_STORE_CTX_init(context, roots.store, nil, nil) == 1,
            let found = X509_STORE_CTX_get1_certs(context, X509_CRL_get_issuer(pointer))
        else { return (false, false) }
        let anchors = CertificateStack(owning: found)
        let hasSigned = (0..<anchors.count).contains { index in
            guard let key = anchors[index].flatMap({ X509_get0_pubkey($0) }) else { return false }
            return X509_CRL_verify(pointer, key) == 1
        }
        return (anchors.count > 0, hasSigned)
    }
}

/// The lists that servers' chains are held to: each certificate below the anchor must be in none,
/// and there must be one of its issuer. Immutable; used by any number of threads at once.
package final class RevocationLists: @unchecked Sendable {
    private let lists: [RevocationList]
    private let stack: OpaquePointer

    private init(_ lists: [RevocationList], _ stack: OpaquePointer) {
        self.lists = lists
        self.stack = stack
    }

    /// Nil only if the library is out of memory.
    private static func stack(of lists: [RevocationList]) -> OpaquePointer? {
        guard let stack = pinfold_sk_X509_CRL_new() else { return nil }
        for list in lists {
            X509_CRL_up_ref(list.pointer)
            guard pinfold_sk_X509_CRL_push(stack, list.pointer) > 0 else {
                X509_CRL_free(list.pointer)
                pinfold_sk_X509_CRL_free(stack)
                return nil
            }
        }
        return stack
    }

    deinit { pinfold_sk_X509_CRL_free(stack) }

    /// - Parameter der: of each list.
    package convenience init(der: [[UInt8]]) throws(TLSContextError) {
        var lists: [RevocationList] = []
        for one in der {
            do throws(RevocationList.Problem) {
                lists.append(try RevocationList(der: one))
            } catch {
                throw .library("\(error)")
            }
        }
        guard let made = Self.stack(of: lists) else { throw .library(ErrorQueue.drain()) }
        self.init(lists, made)
    }

    /// Makes the lists part of a verification.
    func require(in building: OpaquePointer, _ parameters: OpaquePointer) {
        X509_STORE_CTX_set0_crls(building, stack)
        X509_VERIFY_PARAM_set_flags(
            parameters, UInt(X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL))
        X509_STORE_CTX_set_verify_cb(building) { isVerified, building in
            guard isVerified == 0, let building else { return isVerified }
            // An anchor is trusted for what it is: nobody need have said that it is not revoked.
            switch X509_STORE_CTX_get_error(building) {
            case X509_V_ERR_UNABLE_TO_GET_CRL, X509_V_ERR_UNABLE_TO_GET_CRL_ISSUER: break
            default: return 0
            }
            let chain = X509_STORE_CTX_get0_chain(building)
            guard X509_STORE_CTX_get_error_depth(building) == pinfold_sk_X509_num(chain) - 1 else {
                return 0
            }
            X509_STORE_CTX_set_error(building, X509_V_OK)
            return 1
        }
    }

    /// Until when the lists say something of a chain that they let pass, in seconds since 1970;
    /// nil: they say nothing of it.
    func end(of chain: CertificateStack) -> Int64? {
        var end: Int64?
        for index in 0..<max(0, chain.count - 1) {
            guard let certificate = chain[index] else { continue }
            let name = X509_get_issuer_name(certificate)
            let newest = lists.filter { X509_NAME_cmp(X509_CRL_get_issuer($0.pointer), name) == 0 }
                .map(\.ends).max()
            if let newest { end = min(end ?? newest, newest) }
        }
        return end
    }
}

extension RevocationFailure {
    /// What the library's verification found about revocation; nil: something else.
    init?(_ code: Int32, certificate: X509View) {
        let subject = certificate.subject
        let issuer = certificate.issuer
        switch code {
        case X509_V_ERR_CERT_REVOKED:
            self.init(.revoked, "\(issuer) has revoked the certificate of \(subject)")
        case X509_V_ERR_UNABLE_TO_GET_CRL, X509_V_ERR_UNABLE_TO_GET_CRL_ISSUER,
            X509_V_ERR_DIFFERENT_CRL_SCOPE:
            self.init(
                .listMissing,
                "there is no CRL of \(issuer) that could tell of the certificate of \(subject)")
        case X509_V_ERR_CRL_HAS_EXPIRED:
            self.init(.listExpired, "the CRL of \(issuer) is out of date")
        case X509_V_ERR_CRL_NOT_YET_VALID, X509_V_ERR_CRL_SIGNATURE_FAILURE,
            X509_V_ERR_UNABLE_TO_DECRYPT_CRL_SIGNATURE,
            X509_V_ERR_ERROR_IN_CRL_LAST_UPDATE_FIELD, X509_V_ERR_ERROR_IN_CRL_NEXT_UPDATE_FIELD,
            X509_V_ERR_KEYUSAGE_NO_CRL_SIGN, X509_V_ERR_UNHANDLED_CRITICAL_CRL_EXTENSION,
            X509_V_ERR_CRL_PATH_VALIDATION_ERROR:
            let reason = String(cString: X509_verify_cert_error_string(Int(code)))
            self.init(.listInvalid, "the CRL of \(issuer) cannot be used: \(reason)")
        default: return nil
        }
    }
}
