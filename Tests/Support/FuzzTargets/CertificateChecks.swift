import COpenSSL
import PinfoldTLS
import Trust

extension FuzzTarget {
    /// A certificate in DER. Its elements can be put together again, and if the TLS library accepts
    /// it, both read the same fields, extensions and timestamps.
    func checkCertificate(_ bytes: [UInt8]) throws(FuzzCheckError) -> Bool {
        try DERCheck.check(bytes[...], depth: 0)
        let fields = CertificateFields(der: bytes)
        let content = TransparencyContent(certificate: bytes)
        if let content { try Self.check(content, bytes) }
        if let fields {
            try Self.checkRules([fields], isComplete: false)
            try Self.checkRules([fields, fields], isComplete: true)
        }
        guard let certificate = parseCertificate(der: bytes) else {
            guard (try? CertificateInspection(certificate: bytes)) == nil else {
                throw FuzzCheckError("no certificate, which was examined")
            }
            return false
        }
        defer {
            X509_free(certificate)
            ERR_clear_error()
        }
        if let fields { try Self.check(fields, certificate) }
        if let content {
            let index = X509_get_ext_by_NID(certificate, NID_ct_precert_scts, -1)
            guard (index >= 0) == (content.timestamps != nil) else {
                throw FuzzCheckError("timestamps, of which the library sees others")
            }
        }
        try Self.checkInspection(bytes)
        return fields != nil
    }

    private static func check(
        _ content: TransparencyContent, _ bytes: [UInt8]
    ) throws(FuzzCheckError) {
        guard let timestamps = content.timestamps else {
            guard content.signed.isEmpty else { throw FuzzCheckError("signed for no timestamps") }
            return
        }
        guard timestamps.count + content.signed.count < bytes.count,
            DERReader.single(content.signed[...], DERElement.sequence) != nil
        else { throw FuzzCheckError("\(content.signed) was signed") }
    }

    private static func checkRules(
        _ chain: [CertificateFields], isComplete: Bool
    ) throws(FuzzCheckError) {
        for profile in TrustProfile.allCases {
            let rules = ChainRules(
                chain: chain, profile: AppliedProfile(profile), suffixes: SuffixList(),
                isComplete: isComplete)
            let violation = rules.violation
            guard violation == rules.violation,
                violation.map({ chain.indices.contains($0.position) }) ?? true
            else { throw FuzzCheckError("\(String(describing: violation))") }
        }
    }

    /// What is shown of a certificate is printable.
    private static func checkInspection(_ bytes: [UInt8]) throws(FuzzCheckError) {
        guard let inspection = try? CertificateInspection(certificate: bytes) else { return }
        let texts = [inspection.identity.subject, inspection.issuer] + inspection.names
        guard
            texts.allSatisfy({ text in
                text.utf8.count <= 512 && text.utf8.allSatisfy { (0x20...0x7E).contains($0) }
            })
        else { throw FuzzCheckError("\(texts) are shown") }
    }

    private static func check(
        _ fields: CertificateFields, _ certificate: OpaquePointer
    ) throws(FuzzCheckError) {
        let serial = X509_get0_serialNumber(certificate)
        let isNegative = ASN1_STRING_type(serial) & V_ASN1_NEG != 0
        let magnitude = Array(
            UnsafeBufferPointer(
                start: ASN1_STRING_get0_data(serial), count: Int(ASN1_STRING_length(serial))))
        guard X509_get_version(certificate) + 1 == fields.version,
            isNegative == ((fields.serial.first ?? 0) >= 0x80),
            isNegative
                || fields.serial.drop(while: { $0 == 0 }) == magnitude.drop(while: { $0 == 0 }),
            name(X509_get_issuer_name(certificate)) == Array(fields.issuer),
            name(X509_get_subject_name(certificate)) == Array(fields.subject)
        else { throw FuzzCheckError("the library reads other fields") }
        let count = max(0, X509_get_ext_count(certificate))
        guard Int(count) == fields.extensions.count else {
            throw FuzzCheckError("the library reads \(count) extensions")
        }
        for (index, own) in fields.extensions.enumerated() {
            let other = X509_get_ext(certificate, Int32(index))
            let identifier = X509_EXTENSION_get_object(other)
            let value = X509_EXTENSION_get_data(other)
            let isSame =
                own.identifier.elementsEqual(
                    UnsafeBufferPointer(
                        start: OBJ_get0_data(identifier), count: OBJ_length(identifier)))
                && own.value.elementsEqual(
                    UnsafeBufferPointer(
                        start: ASN1_STRING_get0_data(value), count: Int(ASN1_STRING_length(value))))
                && own.isCritical == (X509_EXTENSION_get_critical(other) != 0)
            guard isSame else { throw FuzzCheckError("the library reads another extension") }
        }
    }

    private static func name(_ name: OpaquePointer?) -> [UInt8] {
        var start: UnsafePointer<UInt8>?
        var count = 0
        guard X509_NAME_get0_der(name, &start, &count) == 1 else { return [] }
        return Array(UnsafeBufferPointer(start: start, count: count))
    }

    // MARK: Timestamps

    /// A SignedCertificateTimestampList. What was read of each timestamp is all of it, and the same
    /// as what the TLS library reads.
    func checkTimestampList(_ bytes: [UInt8]) throws(FuzzCheckError) -> Bool {
        let list: [Result<SignedTimestamp, TimestampRejectionReason>]
        do throws(TimestampRejectionReason) {
            list = try SignedTimestamp.list(bytes[...])
        } catch {
            guard Self.library(bytes)?.isEmpty ?? true else {
                throw FuzzCheckError("\(error), but the library reads timestamps")
            }
            return false
        }
        let timestamps = list.compactMap { try? $0.get() }
        guard list.count * 3 <= bytes.count else { throw FuzzCheckError("\(list.count) elements") }
        for timestamp in timestamps {
            let entry = SignedTimestamp.Entry.certificate([1, 2, 3])
            guard timestamp.signedContent(of: entry)?.count == 20 + timestamp.extensions.count
            else { throw FuzzCheckError("\(timestamp) signs something else") }
        }
        guard timestamps.count == list.count else { return true }
        let written = timestamps.flatMap {
            TLSBytes.vector(Self.written($0), lengthBytes: 2)
        }
        guard TLSBytes.vector(written, lengthBytes: 2) == bytes else {
            throw FuzzCheckError("\(timestamps) are not what was there")
        }
        // The library refuses a list in which it does not know an algorithm.
        guard timestamps.allSatisfy(\.hasAllowedAlgorithm) else { return true }
        guard let other = Self.library(bytes), other == timestamps.map(Self.written) else {
            throw FuzzCheckError("the library reads other timestamps than \(timestamps)")
        }
        return true
    }

    private static func written(_ timestamp: SignedTimestamp) -> [UInt8] {
        [0] + timestamp.log.bytes
            + stride(from: UInt64(56), through: 0, by: -8).map {
                UInt8(truncatingIfNeeded: timestamp.milliseconds >> $0)
            }
            + TLSBytes.vector(timestamp.extensions, lengthBytes: 2)
            + [timestamp.hash, timestamp.algorithm]
            + TLSBytes.vector(timestamp.signature, lengthBytes: 2)
    }

    /// The timestamps of a list as the TLS library writes them; `nil` if it refuses the list.
    private static func library(_ bytes: [UInt8]) -> [[UInt8]]? {
        defer { ERR_clear_error() }
        let list = bytes.withUnsafeBufferPointer { buffer -> OpaquePointer? in
            var position = buffer.baseAddress
            return o2i_SCT_LIST(nil, &position, buffer.count)
        }
        guard let list else { return nil }
        defer { SCT_LIST_free(list) }
        return (0..<max(0, OPENSSL_sk_num(list))).map { index -> [UInt8] in
            let one = OPENSSL_sk_value(list, index).map { OpaquePointer($0) }
            var start: UnsafeMutablePointer<UInt8>?
            let count = i2o_SCT(one, &start)
            defer { CRYPTO_free(start, nil, 0) }
            return Array(UnsafeBufferPointer(start: start, count: Int(max(0, count))))
        }
    }
}

private enum DERCheck {
    /// Elements, whatever they mean, are what is written of them, one after the other.
    static func check(_ bytes: ArraySlice<UInt8>, depth: Int) throws(FuzzCheckError) {
        var reader = DERReader(bytes)
        var position = bytes.startIndex
        while let element = reader.next() {
            guard element.whole.startIndex == position,
                element.contents.endIndex == element.whole.endIndex,
                element.whole.elementsEqual(DERBytes.element(element.tag, element.contents))
            else { throw FuzzCheckError("\(element.whole) is \(element)") }
            position = element.whole.endIndex
            if depth < 8 { try check(element.contents, depth: depth + 1) }
        }
        guard reader.rest.startIndex == position, reader.rest.endIndex == bytes.endIndex else {
            throw FuzzCheckError("bytes were lost behind \(position)")
        }
    }
}
