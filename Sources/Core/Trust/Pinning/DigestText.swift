import HTTPCore

/// Why a text is not the base64 of a SHA-256 digest: 43 digits of the standard alphabet and one `=`
/// (RFC 4648 §4); the two unused bits of the last digit are zero.
package enum DigestTextReason: Hashable, Sendable {
    /// A character that is not a base64 digit, and its position from 1.
    case character(Unicode.Scalar, position: Int)
    /// The number of characters, if it is not 44 and all are base64 digits.
    case length(Int)
    /// An `=` before the end, and its position from 1.
    case padding(position: Int)
    /// 44 digits without `=`, or two `=` at the end: not 32 bytes.
    case paddingCount(Int)
    /// The last digit encodes bits that 32 bytes do not have.
    case trailingBits(Unicode.Scalar)

    /// What is wrong and what was expected, for a configuration's error line.
    var problem: String {
        let expected = "expected 44 characters, the base64 of 32 bytes: 43 digits and '='"
        switch self {
        case .character(let scalar, let position) where scalar == "-" || scalar == "_":
            return "'\(scalar)' at position \(position) of the digest is from URL-safe base64;"
                + " expected the standard alphabet, with '+' and '/'"
        case .character(let scalar, let position):
            let shown = scalar.isASCII && scalar.value > 0x20 && scalar.value < 0x7F
            let name = shown ? "'\(scalar)'" : scalar.escaped(asASCII: true)
            return "\(name) at position \(position) of the digest is not a base64 digit; "
                + expected
        case .length(let count):
            return "the digest has \(count) characters; \(expected)"
        case .padding(let position):
            return "the digest has '=' at position \(position), before its end; \(expected)"
        case .paddingCount(let count):
            return "the digest ends in \(count == 0 ? "no" : "\(count)") '='; \(expected)"
        case .trailingBits(let scalar):
            return "no digest ends in '\(scalar)=': the last digit before '=' carries two unused"
                + " bits, which must be zero; expected one of AEIMQUYcgkosw048 there, so perhaps"
                + " this is a placeholder or was mistyped"
        }
    }
}

extension SHA256Digest {
    /// The number of characters of a digest in base64.
    static let base64Count = 44

    /// Reads the base64 of a digest.
    static func parse(base64 text: ArraySlice<UInt8>) throws(PinError) -> SHA256Digest {
        if let bytes = Base64.decode(text), let digest = SHA256Digest(bytes.span) { return digest }
        throw .badDigest(problem(of: String(decoding: text, as: UTF8.self)))
    }

    /// What is wrong with a text that does not decode to 32 bytes.
    private static func problem(of text: String) -> DigestTextReason {
        let scalars = Array(text.unicodeScalars)
        for (index, scalar) in scalars.enumerated() where scalar != "=" {
            let isDigit = UInt8(exactly: scalar.value).map { Base64.value($0) != nil } ?? false
            if !isDigit { return .character(scalar, position: index + 1) }
        }
        let padding = scalars.reversed().prefix { $0 == "=" }.count
        let digits = scalars.dropLast(padding)
        if let index = digits.firstIndex(of: "=") { return .padding(position: index + 1) }
        guard scalars.count == base64Count else { return .length(scalars.count) }
        guard padding == 1, let last = digits.last else { return .paddingCount(padding) }
        return .trailingBits(last)
    }
}
