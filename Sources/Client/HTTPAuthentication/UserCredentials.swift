import HTTPCore

/// A user's name and password.
public struct UserCredentials: Hashable, Sendable {
    /// Bytes of each.
    public static let maximumBytes = 8192

    /// The name, without a colon for Basic.
    public var user: String
    /// In clear text.
    public var password: String

    /// The credentials of a user.
    public init(user: String, password: String) { (self.user, self.password) = (user, password) }

    /// The Basic scheme's field value (RFC 7617), in UTF-8, whatever `charset` the challenge names:
    /// there is no other to name, and browsers do so, too.
    ///
    /// - Throws: where the name has a colon, or either a control character.
    public func basic() throws(AuthenticationError) -> String {
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

/// Why credentials cannot be written.
public enum AuthenticationError: Error, Hashable, Sendable {
    /// The Basic scheme ends a user's name at a colon.
    case colonInUserName
    /// A name or a password has one.
    case controlCharacter
    /// A name or a password has more than ``UserCredentials/maximumBytes``.
    case tooLong
    /// The server asks for content to be protected (`auth-int`), which is not there as a whole.
    case contentNeeded
    /// OpenSSL does not compute it, as where only FIPS algorithms are allowed.
    case algorithmUnavailable(DigestAlgorithm)
    /// So many requests were made with one nonce that its count has no digits left.
    case nonceUsedUp
}

extension AuthenticationError: CustomStringConvertible {
    /// What is wrong, for a sentence.
    public var description: String {
        switch self {
        case .colonInUserName: "the Basic scheme takes no user's name with a colon"
        case .controlCharacter: "the user's name or the password has a control character"
        case .tooLong:
            "the user's name or the password has more than \(UserCredentials.maximumBytes) bytes"
        case .contentNeeded:
            "the server asks for the content to be protected (auth-int), which is not in memory"
        case .algorithmUnavailable(let algorithm): "OpenSSL does not compute \(algorithm.rawValue)"
        case .nonceUsedUp: "the server's nonce has been used too often"
        }
    }
}
