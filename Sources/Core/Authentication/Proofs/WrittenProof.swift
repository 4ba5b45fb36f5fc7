import HTTPCore

/// The value of an Authorization or Proxy-Authorization field (RFC 9110 §11.4):
///
///     credentials = auth-scheme [ 1*SP ( token68 / #auth-param ) ]
///
/// Of the schemes in use here, both have a token68: Basic (RFC 7617 §2) that of `user:password`,
/// Bearer (RFC 6750 §2.1) the token.
package enum WrittenProof: Equatable {
    /// The range of the token68 in the value.
    case basic(Range<Int>)
    case bearer(Range<Int>)

    /// - Returns: `nil` for another scheme, and where there is no token68 and nothing else.
    package init?(_ value: Span<UInt8>) {
        let end = Self.endOfScheme(value)
        var start = end
        while start < value.count, value[start] == 0x20 { start += 1 }
        guard start > end, Self.isToken68(value.extracting(start..<value.count)) else { return nil }
        switch Self.method(ofScheme: value.extracting(0..<end)) {
        case .basic: self = .basic(start..<value.count)
        case .bearer: self = .bearer(start..<value.count)
        case .certificate, nil: return nil
        }
    }

    /// The method of a value's scheme, whatever follows; `nil` for another scheme.
    package static func method(of value: Span<UInt8>) -> AuthenticationMethod? {
        method(ofScheme: value.extracting(0..<endOfScheme(value)))
    }

    private static func endOfScheme(_ value: Span<UInt8>) -> Int {
        var end = 0
        while end < value.count, ASCII.isToken(value[end]) { end += 1 }
        return end
    }

    private static func method(ofScheme scheme: Span<UInt8>) -> AuthenticationMethod? {
        if scheme.equals(lowercase: "basic") { return .basic }
        return scheme.equals(lowercase: "bearer") ? .bearer : nil
    }

    package var method: AuthenticationMethod {
        switch self {
        case .basic: .basic
        case .bearer: .bearer
        }
    }

    /// The position of the token68 in the value.
    package var token: Range<Int> {
        switch self {
        case .basic(let range), .bearer(let range): range
        }
    }

    /// `1*( ALPHA / DIGIT / "-" / "." / "_" / "~" / "+" / "/" ) *"="`.
    private static func isToken68(_ bytes: Span<UInt8>) -> Bool {
        var end = bytes.count
        while end > 0, bytes[end - 1] == UInt8(ascii: "=") { end -= 1 }
        guard end > 0 else { return false }
        for index in 0..<end {
            switch bytes[index] {
            case UInt8(ascii: "-")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "_"),
                UInt8(ascii: "~"):
                break
            default: guard ASCII.isLetter(bytes[index]) else { return false }
            }
        }
        return true
    }
}

/// A user name and a password of Basic.
package struct UserPassword: Sendable, Equatable {
    /// The longest password, in bytes: one less than crypt(3) accepts.
    package static let maximumPasswordBytes = 511

    package let user: String
    /// UTF-8 without control characters, as RFC 7617 §2 demands of both; may be empty.
    package let password: [UInt8]

    /// - Parameter token: the base64 of `user:password` in UTF-8 (RFC 7617 §2.1).
    /// - Returns: `nil` for anything else, for a user that no file can have, and for a password
    ///   that is too long.
    package init?(token: Span<UInt8>) {
        // The longest user and password, in base64.
        let limit = CredentialLines.maximumNameBytes + 1 + Self.maximumPasswordBytes
        guard token.count <= Base64.count(limit) else { return nil }
        let text = (0..<token.count).map { token[$0] }
        guard let pair = Base64.decode(text),
            let colon = pair.firstIndex(of: UInt8(ascii: ":")),
            let user = CredentialLines.name(of: pair[..<colon])
        else { return nil }
        let password = pair[(colon + 1)...]
        guard password.count <= Self.maximumPasswordBytes,
            password.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }),
            String(validating: password, as: UTF8.self) != nil
        else { return nil }
        self.user = user
        self.password = Array(password)
    }
}
