import COpenSSL
import Trust

extension X509View {
    /// How many names of a certificate are read.
    private static let namesRead = 64
    /// The longest name that is read, in bytes.
    private static let nameBytes = 1024

    /// All names of the subject and all DNS names, mail addresses and URIs; `nil` if one of them
    /// can be read in two ways: a control character such as NUL, an encoding other than UTF8String,
    /// PrintableString and IA5String, or too many or too long names.
    var clientNames: CertificateNames? {
        defer { ERR_clear_error() }
        var found = CertificateNames()
        guard let subject = subjectAttributes else { return nil }
        found.subject = subject
        var critical: Int32 = 0
        guard
            let names = OpaquePointer(
                X509_get_ext_d2i(pointer, NID_subject_alt_name, &critical, nil))
        else {
            // Absent; not twice, and not malformed.
            return critical == -1 ? found : nil
        }
        defer { GENERAL_NAMES_free(names) }
        let count = pinfold_sk_GENERAL_NAME_num(names)
        guard count <= Self.namesRead else { return nil }
        for index in 0..<count {
            var type: Int32 = -1
            let name = pinfold_sk_GENERAL_NAME_value(names, index)
            guard let value = GENERAL_NAME_get0_value(name, &type) else { return nil }
            guard [GEN_DNS, GEN_EMAIL, GEN_URI].contains(type) else { continue }
            let string = value.assumingMemoryBound(to: ASN1_STRING.self)
            guard let bytes = Self.text(string), bytes.allSatisfy({ 0x21...0x7E ~= $0 }) else {
                return nil
            }
            switch type {
            case GEN_DNS: found.dns.append(bytes)
            case GEN_EMAIL: found.email.append(bytes)
            default: found.uri.append(bytes)
            }
        }
        return found
    }

    private var subjectAttributes: [[CertificateNames.Attribute]]? {
        guard let name = X509_get_subject_name(pointer) else { return nil }
        let count = X509_NAME_entry_count(name)
        guard count <= Self.namesRead else { return nil }
        var names: [[CertificateNames.Attribute]] = []
        var set: Int32?
        for index in 0..<count {
            guard let entry = X509_NAME_get_entry(name, index),
                let type = Self.identifier(X509_NAME_ENTRY_get_object(entry)),
                let value = Self.text(X509_NAME_ENTRY_get_data(entry))
            else { return nil }
            let attribute = CertificateNames.Attribute(type: type, value: value)
            let own = X509_NAME_ENTRY_set(entry)
            if own == set {
                names[names.count - 1].append(attribute)
            } else {
                names.append([attribute])
            }
            set = own
        }
        return names.reversed()
    }

    private static func identifier(_ object: OpaquePointer?) -> String? {
        var text = [CChar](repeating: 0, count: 128)
        let count = OBJ_obj2txt(&text, Int32(text.count), object, 1)
        guard count > 0, count < text.count else { return nil }
        return String(
            decoding: text.prefix(Int(count)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// The text of a string, as the certificate has it.
    private static func text(_ string: UnsafePointer<ASN1_STRING>?) -> [UInt8]? {
        guard let string, let start = ASN1_STRING_get0_data(string),
            [V_ASN1_UTF8STRING, V_ASN1_PRINTABLESTRING, V_ASN1_IA5STRING].contains(
                ASN1_STRING_type(string))
        else { return nil }
        let bytes = Array(UnsafeBufferPointer(start: start, count: Int(ASN1_STRING_length(string))))
        guard (1...nameBytes).contains(bytes.count),
            let text = String(validating: bytes, as: UTF8.self),
            ASN1_STRING_type(string) == V_ASN1_UTF8STRING || bytes.allSatisfy({ $0 < 0x80 })
        else { return nil }
        let isPlain = text.unicodeScalars.allSatisfy { scalar in
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator: false
            default: true
            }
        }
        return isPlain ? bytes : nil
    }
}

extension TLSServerConnection {
    /// The names in the client's certificate, and when it expires, in seconds since 1970; `nil` if
    /// it has shown none, or one whose names can be read in two ways.
    package var clientNames: (names: CertificateNames, expires: Int64)? {
        guard isOpen, let certificate = SSL_get0_peer_certificate(ssl) else { return nil }
        let view = X509View(certificate)
        return view.clientNames.map { ($0, view.notAfter) }
    }
}
