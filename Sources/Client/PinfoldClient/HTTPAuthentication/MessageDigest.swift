import COpenSSL
import HTTPCore

/// The hash algorithms of the Digest scheme (RFC 7616, section 6.1), computed by OpenSSL.
package enum DigestAlgorithm: String, Hashable, Sendable, CaseIterable {
    /// The old default. It is broken, but still better than Basic over clear text.
    case md5 = "MD5"
    /// MD5, bound to a session.
    case md5Session = "MD5-sess"
    /// Required of every server that implements RFC 7616.
    case sha256 = "SHA-256"
    /// SHA-256, bound to a session.
    case sha256Session = "SHA-256-sess"
    /// SHA-512/256 (FIPS 180-4).
    case truncatedSHA512 = "SHA-512-256"
    /// SHA-512/256, bound to a session.
    case truncatedSHA512Session = "SHA-512-256-sess"

    /// Returns the algorithm with a name in any letter case, or `nil` if it is unknown.
    package init?(name: String) {
        let name = name.lowercasedASCII
        guard let found = Self.allCases.first(where: { $0.rawValue.lowercasedASCII == name }) else {
            return nil
        }
        self = found
    }

    /// Whether the password's hash is bound to the first nonce of a session.
    package var isSession: Bool { rawValue.hasSuffix("-sess") }

    /// Larger values are harder to break.
    var strength: Int {
        switch self {
        case .md5, .md5Session: 0
        case .sha256, .sha256Session: 1
        case .truncatedSHA512, .truncatedSHA512Session: 2
        }
    }

    /// Returns the hash as lower-case hexadecimal digits.
    func hexadecimal(_ bytes: [UInt8]) throws(AuthenticationError) -> String {
        let function =
            switch self {
            case .md5, .md5Session: EVP_md5()
            case .sha256, .sha256Session: EVP_sha256()
            case .truncatedSHA512, .truncatedSHA512Session: EVP_sha512_256()
            }
        var value = [UInt8](repeating: 0, count: 64)
        var count: UInt32 = 0
        guard EVP_Digest(bytes, bytes.count, &value, &count, function, nil) == 1 else {
            ERR_clear_error()
            throw .algorithmUnavailable(self)
        }
        let text = value[..<Int(count)].flatMap { [ASCII.hexDigit($0 >> 4), ASCII.hexDigit($0)] }
        return String(decoding: text, as: UTF8.self)
    }

    func hexadecimal(_ text: String) throws(AuthenticationError) -> String {
        try hexadecimal(Array(text.utf8))
    }
}
