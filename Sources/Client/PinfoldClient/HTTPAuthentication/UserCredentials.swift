import HTTPCore

/// A user name and password.
package struct UserCredentials: Hashable, Sendable {
    /// The maximum length of each, in bytes.
    package static let maximumBytes = 8192

    /// The user name. For Basic it must not contain a colon.
    package var user: String
    /// The password in clear text.
    package var password: String

    /// Creates credentials.
    package init(user: String, password: String) { (self.user, self.password) = (user, password) }

    /// Returns the field value for the Basic scheme (RFC 7617), encoded as UTF-8 whatever the
    /// challenge's `charset` says: UTF-8 is the only value defined, and browsers always use it,
    /// too.
    ///
    /// - Throws: ``AuthenticationError`` if the user name contains a colon, or either contains a
    ///   control character.
    package func basic() throws(AuthenticationError) -> String {
        guard !user.utf8.contains(UInt8(ascii: ":")) else { throw .colonInUserName }
        try check()
        return "Basic \(Base64.encode(Array("\(user):\(password)".utf8)))"
    }

    func check() throws(AuthenticationError) {
        for text in [user, password] {
            guard text.utf8.count <= Self.maximumBytes else { throw .tooLong }
            guard text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
                throw .controlCharacter
            }
        }
    }
}

/// The reason why credentials cannot be sent.
package enum AuthenticationError: Error, Hashable, Sendable {
    /// The user name contains a colon, which ends it in the Basic scheme.
    case colonInUserName
    /// The user name or the password contains a control character.
    case controlCharacter
    /// The user name or the password has more than ``UserCredentials/maximumBytes``.
    case tooLong
    /// The server requires the content to be protected (`auth-int`), but it is not in memory as a
    /// whole.
    case contentNeeded
    /// OpenSSL does not provide this algorithm, for example because only FIPS algorithms are
    /// allowed.
    case algorithmUnavailable(DigestAlgorithm)
    /// The nonce has been used for so many requests that its count has no digits left.
    case nonceUsedUp
}

extension AuthenticationError: CustomStringConvertible {
    /// What is wrong, as a phrase within a sentence.
    package var description: String {
        switch self {
        case .colonInUserName: "the Basic scheme does not allow a colon in the user name"
        case .controlCharacter: "the user name or the password contains a control character"
        case .tooLong:
            "the user name or the password has more than \(UserCredentials.maximumBytes) bytes"
        case .contentNeeded:
            "the server requires the content to be protected (auth-int), but it is not in memory"
        case .algorithmUnavailable(let algorithm): "OpenSSL does not provide \(algorithm.rawValue)"
        case .nonceUsedUp: "the server's nonce has been used too often"
        }
    }
}
