import COpenSSL
import Trust

/// A list of revoked certificates (RFC 5280 §5), parsed. Immutable.
package final class RevocationList: @unchecked Sendable {
    /// Why a list cannot be used.
    package enum ParseError: Error, Hashable, Sendable, CustomStringConvertible {
        case malformed
        /// It contains only the changes since another list.
        case delta
        /// It does not state when it ends (RFC 5280 §5.1.2.5).
        case endless

        package var description: String {
            switch self {
            case .malformed: "a list that cannot be read"
            case .delta: "a delta CRL, or entries of one: only changes since another list"
            case .endless: "a list without nextUpdate, which could never be found to be out of date"
            }
        }
    }

    let pointer: OpaquePointer
    /// When it was issued, in seconds since 1970.
    package let issued: Int64
    /// When a newer one is due at the latest, in seconds since 1970.
    package let ends: Int64

    /// - Parameter der: the DER of one list; trailing bytes are refused.
    package init(der: [UInt8]) throws(ParseError) {
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
        let begin = X509View.seconds(X509_CRL_get0_lastUpdate(read))
        let end = X509_CRL_get0_nextUpdate(read).flatMap { X509View.seconds($0) }
        issued = begin ?? .max
        ends = end ?? .min
        if X509_CRL_get_ext_by_NID(read, NID_delta_crl, -1) >= 0 { throw .delta }
        if X509_CRL_get0_nextUpdate(read) == nil { throw .endless }
        if begin == nil || end == nil { throw .malformed }
        try checkExtensions()
        sort()
    }

    /// Refuses what the library would ignore: an extension that decides what a list or an entry
    /// covers but cannot be read, even a critical one, and an entry that only withdraws another
    /// list's (RFC 5280 §5.3.1).
    private func checkExtensions() throws(ParseError) {
        defer { ErrorQueue.clear() }
        for (kind, type) in [
            (NID_issuing_distribution_point, ISSUING_DIST_POINT_it()),
            (NID_authority_key_identifier, AUTHORITY_KEYID_it()),
            (NID_crl_number, ASN1_INTEGER_it()),
        ] {
            var presence: Int32 = 0
            let value = X509_CRL_get_ext_d2i(pointer, kind, &presence, nil)
            ASN1_item_free(OpaquePointer(value), type)
            try Self.check(value, presence)
        }
        let revoked = X509_CRL_get_REVOKED(pointer)
        for index in 0..<max(0, pinfold_sk_X509_REVOKED_num(revoked)) {
            let entry = pinfold_sk_X509_REVOKED_value(revoked, index)
            var presence: Int32 = 0
            let issuer = X509_REVOKED_get_ext_d2i(entry, NID_certificate_issuer, &presence, nil)
            ASN1_item_free(OpaquePointer(issuer), GENERAL_NAMES_it())
            try Self.check(issuer, presence)
            let reason = X509_REVOKED_get_ext_d2i(entry, NID_crl_reason, &presence, nil)
            defer { ASN1_item_free(OpaquePointer(reason), ASN1_ENUMERATED_it()) }
            try Self.check(reason, presence)
            let code = reason?.assumingMemoryBound(to: ASN1_ENUMERATED.self)
            if let code, ASN1_ENUMERATED_get(code) == CRL_REASON_REMOVE_FROM_CRL { throw .delta }
        }
    }

    /// - Parameters:
    ///   - value: an extension's, as the library reads it.
    ///   - presence: -1 if the extension is absent. Otherwise there must be a value: there is none
    ///     if it cannot be parsed, or is there more than once.
    private static func check(
        _ value: UnsafeMutableRawPointer?, _ presence: Int32
    ) throws(ParseError) {
        guard value != nil || presence == -1 else { throw .malformed }
    }

    /// Makes the library sort the entries. It would otherwise do so at the first lookup, under a
    /// lock, while handshakes wait.
    private func sort() {
        guard let serial = ASN1_INTEGER_new() else { return }
        var revoked: OpaquePointer?
        X509_CRL_get0_by_serial(pointer, &revoked, serial)
        ASN1_INTEGER_free(serial)
    }

    deinit { X509_CRL_free(pointer) }

    /// The issuer, for display: printable ASCII.
    package var issuer: String { X509View.text(X509_CRL_get_issuer(pointer)) }

    /// The SHA-256 of the issuer and the revoked certificates. It stays the same for a later list
    /// that revokes the same ones, so that whatever was obtained under one remains valid under the
    /// other. `nil` only if the library is out of memory.
    package var content: SHA256Digest? {
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
        // In the library's order, by serial number.
        let revoked = X509_CRL_get_REVOKED(pointer)
        for index in 0..<max(0, pinfold_sk_X509_REVOKED_num(revoked)) {
            guard let one = pinfold_sk_X509_REVOKED_value(revoked, index),
                let serial = X509_REVOKED_get0_serialNumber(one)
            else { continue }
            add(ASN1_STRING_get0_data(serial), Int(ASN1_STRING_length(serial)))
        }
        return SHA256Digest(hashing: content.span)
    }

    /// Whether it lists a certificate of its issuer.
    func names(_ certificate: OpaquePointer) -> Bool {
        var revoked: OpaquePointer?
        return X509_CRL_get0_by_serial(
            pointer, &revoked, X509_get0_serialNumber(certificate)) != 0
    }

    /// Whether its issuer has the same name as a certificate's issuer.
    func isOfIssuer(of certificate: OpaquePointer) -> Bool {
        X509_NAME_cmp(X509_CRL_get_issuer(pointer), X509_get_issuer_name(certificate)) == 0
    }

    /// Whether another list supersedes it: same issuer and scope, with a higher CRL number (RFC
    /// 5280 §5.2.3) or, if that is inconclusive, a later date.
    package func isReplaced(by other: RevocationList) -> Bool {
        guard isOfSameSeries(as: other) else { return false }
        let (own, theirs) = (number, other.number)
        defer {
            ASN1_INTEGER_free(own)
            ASN1_INTEGER_free(theirs)
        }
        if let own, let theirs {
            let order = ASN1_INTEGER_cmp(own, theirs)
            if order != 0 { return order < 0 }
        }
        return issued < other.issued
    }

    /// Whether issuer and scope are the same as another list's. One that does not name its signing
    /// key may have been signed with any.
    package func isOfSameSeries(as other: RevocationList) -> Bool {
        guard
            X509_NAME_cmp(X509_CRL_get_issuer(pointer), X509_CRL_get_issuer(other.pointer)) == 0,
            value(NID_issuing_distribution_point) == other.value(NID_issuing_distribution_point)
        else { return false }
        guard let own = value(NID_authority_key_identifier),
            let theirs = other.value(NID_authority_key_identifier)
        else { return true }
        return own == theirs
    }

    /// The CRL number, for the caller to free, or `nil` if it has none.
    private var number: UnsafeMutablePointer<ASN1_INTEGER>? {
        defer { ErrorQueue.clear() }
        return X509_CRL_get_ext_d2i(pointer, NID_crl_number, nil, nil)?
            .assumingMemoryBound(to: ASN1_INTEGER.self)
    }

    /// The value of an extension in DER, or `nil` if it is absent.
    private func value(_ identifier: Int32) -> [UInt8]? {
        let index = X509_CRL_get_ext_by_NID(pointer, identifier, -1)
        guard index >= 0,
            let data = X509_EXTENSION_get_data(X509_CRL_get_ext(pointer, index))
        else { return nil }
        return Array(
            UnsafeBufferPointer(
                start: ASN1_STRING_get0_data(data), count: Int(ASN1_STRING_length(data))))
    }

    /// Whether any of the anchors has the issuer's name, and whether its key made the signature.
    package func issuer(among roots: TrustRoots) -> (isKnown: Bool, hasSigned: Bool) {
        defer { ErrorQueue.clear() }
        guard let anchors = roots.anchors(named: X509_CRL_get_issuer(pointer)) else {
            return (false, false)
        }
        let hasSigned = (0..<anchors.count).contains { index in
            guard let key = anchors[index].flatMap({ X509_get0_pubkey($0) }) else { return false }
            return X509_CRL_verify(pointer, key) == 1
        }
        return (anchors.count > 0, hasSigned)
    }
}

/// The lists that servers' chains are checked against: each certificate below the anchor must be
/// absent from all of them, and there must be a list of its issuer. The same applies to a server's
/// certificate that is itself the anchor, unless it is self-issued. Immutable; safe to use from any
/// number of threads at once.
package final class RevocationLists: @unchecked Sendable {
    private let lists: [RevocationList]
    private let stack: OpaquePointer

    private init(_ lists: [RevocationList], _ stack: OpaquePointer) {
        self.lists = lists
        self.stack = stack
    }

    /// `nil` only if the library is out of memory.
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

    /// - Parameter der: the DER of each list.
    package convenience init(der: [[UInt8]]) throws(TLSContextError) {
        var lists: [RevocationList] = []
        for one in der {
            do throws(RevocationList.ParseError) {
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
            guard isVerified == 0, let building,
                InclusiveExpiry.isOnlyError(building) || RevocationLists.mayPass(building)
            else { return isVerified }
            X509_STORE_CTX_set_error(building, X509_V_OK)
            return 1
        }
    }

    /// Whether the library's only finding is that an anchor, or something that a server sent above
    /// one, cannot be looked up: an anchor is trusted as it is.
    private static func mayPass(_ building: OpaquePointer) -> Bool {
        let code = X509_STORE_CTX_get_error(building)
        let depth = X509_STORE_CTX_get_error_depth(building)
        // The first trusted certificate; 0 is the leaf itself, whatever was sent above it.
        let anchor = X509_STORE_CTX_get_num_untrusted(building)
        guard RevocationError.problem(code) != nil, depth >= anchor else { return false }
        guard depth == anchor, let certificate = X509_STORE_CTX_get_current_cert(building) else {
            return true
        }
        // Its own list may contain it. Of the other faults, those that count are found below it.
        if X509_self_signed(certificate, 1) == 1 { return code != X509_V_ERR_CERT_REVOKED }
        return depth > 0
    }

    /// The failure of a chain that the library has accepted and whose anchor is an authority that
    /// another anchor has revoked, or `nil` if it is not revoked. The library checks nothing above
    /// an anchor.
    ///
    /// What a server sends does not count as an issuer: a path ends at its anchor (RFC 5280
    /// §6.1.1), and an attacker with the key of a revoked authority would not send its issuer.
    ///
    /// - Parameter trusted: anchors besides the roots, or `nil` if there are none.
    func anchorFailure(
        _ chain: CertificateStack, among roots: TrustRoots, and trusted: CertificateStack?
    ) -> RevocationError? {
        guard chain.count > 1, let anchor = chain[chain.count - 1] else { return nil }
        let naming = lists.filter { $0.isOfIssuer(of: anchor) && $0.names(anchor) }
        guard !naming.isEmpty, X509_self_signed(anchor, 0) != 1 else { return nil }
        defer { ErrorQueue.clear() }
        let name = X509_get_issuer_name(anchor)
        let isRevoked = [roots.anchors(named: name), trusted].contains { stack in
            guard let stack else { return false }
            return (0..<stack.count).contains { index in
                guard let issuer = stack[index], let key = X509_get0_pubkey(issuer),
                    X509_NAME_cmp(X509_get_subject_name(issuer), name) == 0
                else { return false }
                return naming.contains { X509_CRL_verify($0.pointer, key) == 1 }
            }
        }
        guard isRevoked else { return nil }
        return RevocationError(X509_V_ERR_CERT_REVOKED, certificate: X509View(anchor))
    }

    /// What the lists say against one certificate whose issuer's own certificates are known to be
    /// good, or `nil` for nothing.
    ///
    /// - Parameters:
    ///   - level: the required strength of signatures (SSL_CTX_set_security_level(3)).
    ///   - time: in seconds since 1970; `nil` for now.
    func failure(
        of certificate: OpaquePointer, issuedBy issuer: OpaquePointer, level: Int32,
        at time: Int64?
    ) -> RevocationError? {
        let broken = RevocationError(.listInvalid, "the CRLs cannot be looked at")
        guard let building = X509_STORE_CTX_new(), let anchors = CertificateStack() else {
            return broken
        }
        defer {
            X509_STORE_CTX_free(building)
            ErrorQueue.clear()
        }
        anchors.append(issuer)
        guard X509_STORE_CTX_init(building, nil, certificate, nil) == 1,
            let parameters = X509_STORE_CTX_get0_param(building)
        else { return broken }
        X509_STORE_CTX_set0_trusted_stack(building, anchors.pointer)
        X509_STORE_CTX_set0_crls(building, stack)
        X509_VERIFY_PARAM_set_auth_level(parameters, level)
        if let time { X509_VERIFY_PARAM_set_time(parameters, time_t(time)) }
        X509_STORE_CTX_set_verify_cb(building, InclusiveExpiry.callback)
        X509_VERIFY_PARAM_set_flags(
            parameters, UInt(X509_V_FLAG_PARTIAL_CHAIN | X509_V_FLAG_CRL_CHECK))
        if X509_verify_cert(building) == 1 { return nil }
        return RevocationError(
            X509_STORE_CTX_get_error(building), certificate: X509View(certificate)) ?? broken
    }

    /// The error for a leaf that is the anchor, and that no list can clear because its issuer's
    /// certificate is missing; `nil` if no list has the name of its issuer.
    func unverifiable(_ leaf: OpaquePointer) -> RevocationError? {
        let own = lists.filter { $0.isOfIssuer(of: leaf) }
        guard !own.isEmpty else { return nil }
        if own.contains(where: { $0.names(leaf) }) {
            return RevocationError(X509_V_ERR_CERT_REVOKED, certificate: X509View(leaf))
        }
        let (subject, issuer) = (X509View(leaf).subject, X509View(leaf).issuer)
        return RevocationError(
            .listMissing,
            "the CRL of \(issuer), which covers the certificate of \(subject), cannot be verified: "
                + "the server does not send the issuer's certificate")
    }

    /// How long the lists that cleared a chain are valid, in seconds since 1970; `nil` if they say
    /// nothing about it. Of several lists with the same issuer name, the first to end counts.
    ///
    /// - Parameter time: when the chain was verified, in seconds since 1970: a list that was out of
    ///   date then did not clear the chain.
    func end(of chain: CertificateStack, at time: Int64) -> Int64? {
        (0..<max(0, chain.count - 1)).compactMap { index -> Int64? in
            guard let certificate = chain[index] else { return nil }
            return lists.filter { $0.ends > time && $0.isOfIssuer(of: certificate) }
                .map(\.ends).min()
        }.min()
    }
}

extension RevocationError {
    /// The reason that a code of the library's verification stands for, or `nil` if it is not about
    /// revocation.
    static func problem(_ code: Int32) -> RevocationReason? {
        switch code {
        case X509_V_ERR_CERT_REVOKED: .revoked
        case X509_V_ERR_UNABLE_TO_GET_CRL, X509_V_ERR_UNABLE_TO_GET_CRL_ISSUER,
            X509_V_ERR_DIFFERENT_CRL_SCOPE:
            .listMissing
        case X509_V_ERR_CRL_HAS_EXPIRED: .listExpired
        case X509_V_ERR_CRL_NOT_YET_VALID, X509_V_ERR_CRL_SIGNATURE_FAILURE,
            X509_V_ERR_UNABLE_TO_DECRYPT_CRL_SIGNATURE,
            X509_V_ERR_ERROR_IN_CRL_LAST_UPDATE_FIELD, X509_V_ERR_ERROR_IN_CRL_NEXT_UPDATE_FIELD,
            X509_V_ERR_KEYUSAGE_NO_CRL_SIGN, X509_V_ERR_UNHANDLED_CRITICAL_CRL_EXTENSION,
            X509_V_ERR_CRL_PATH_VALIDATION_ERROR:
            .listInvalid
        default: nil
        }
    }

    /// The library's finding about revocation, or `nil` if it is something else.
    init?(_ code: Int32, certificate: X509View) {
        guard let problem = Self.problem(code) else { return nil }
        let subject = certificate.subject
        let issuer = certificate.issuer
        switch problem {
        case .revoked:
            self.init(problem, "\(issuer) has revoked the certificate of \(subject)")
        case .listMissing:
            self.init(
                problem,
                "there is no CRL of \(issuer) that covers the certificate of \(subject)")
        case .listExpired: self.init(problem, "the CRL of \(issuer) is out of date")
        default:
            let reason = String(cString: X509_verify_cert_error_string(Int(code)))
            self.init(problem, "the CRL of \(issuer) cannot be used: \(reason)")
        }
    }
}
