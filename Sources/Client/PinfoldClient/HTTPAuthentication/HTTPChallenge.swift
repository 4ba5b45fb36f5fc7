import HTTPCore

/// A challenge in a WWW-Authenticate or Proxy-Authenticate field (RFC 9110, section 11).
///
///     challenge   = auth-scheme [ 1*SP ( token68 / #auth-param ) ]
///     auth-param  = token BWS "=" BWS ( token / quoted-string )
///     token68     = 1*( ALPHA / DIGIT / "-" / "." / "_" / "~" / "+" / "/" ) *"="
///
/// An Authentication-Info field is a list of such parameters without a scheme. Some devices send
/// what the grammar does not allow; ``ChallengeReader`` says how much of that is accepted.
///
/// ``AuthenticationChallenge`` is what a session's hook is given.
package struct HTTPChallenge: Hashable, Sendable {
    /// The maximum size of all fields of a response together, in bytes.
    package static let maximumBytes = 65_536
    /// The maximum number of challenges in a response.
    package static let maximumChallenges = 32
    /// The maximum number of parameters in a challenge.
    package static let maximumParameters = 64

    /// The scheme in lower case: `basic`, `digest`, `negotiate`.
    package var scheme: String
    /// The token68 that some schemes have in place of parameters.
    package var token68: String?
    /// The parameters by their names in lower case. Values are unquoted and unescaped.
    package var parameters: [String: String] {
        get { parameterBytes.mapValues(Self.text) }
        set { parameterBytes = newValue.mapValues { Array($0.utf8) } }
    }
    /// The parameters' bytes as the server sent them, since some have to be sent back. They need
    /// not be valid UTF-8.
    package var parameterBytes: [String: [UInt8]]

    /// Creates a challenge.
    package init(scheme: String, token68: String? = nil, parameters: [String: String] = [:]) {
        self.scheme = scheme.lowercasedASCII
        self.token68 = token68
        parameterBytes = parameters.mapValues { Array($0.utf8) }
    }

    /// Decodes UTF-8, or ISO 8859-1 (as RFC 2616 had it) if the bytes are not valid UTF-8.
    static func text(_ bytes: [UInt8]) -> String {
        String(validating: bytes, as: UTF8.self)
            ?? String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
    }

    /// The `realm` parameter, which most schemes have.
    package var realm: String? { parameterBytes["realm"].map(Self.text) }

    /// Parses all fields with the same name, in their order.
    package static func parse(
        _ fields: [String]
    ) throws(ChallengeError) -> [HTTPChallenge] {
        try parse(fields.map { Array($0.utf8) })
    }

    /// Parses all fields with the same name, in their order, as bytes that need not be valid UTF-8.
    package static func parse(
        _ fields: [[UInt8]]
    ) throws(ChallengeError) -> [HTTPChallenge] {
        // Several field lines form a single list (RFC 9110, section 5.3).
        var reader = try ChallengeReader(Array(fields.joined(separator: ",".utf8)))
        return try reader.challenges()
    }

    /// Parses a single field.
    package static func parse(
        _ field: String
    ) throws(ChallengeError) -> [HTTPChallenge] { try parse([field]) }

    /// Parses an Authentication-Info or Proxy-Authentication-Info field (RFC 9110, section 11.6.3)
    /// and returns its parameters by their names in lower case.
    package static func parse(info field: String) throws(ChallengeError) -> [String: String] {
        var reader = try ChallengeReader(Array(field.utf8))
        return try reader.info().mapValues(text)
    }
}

/// An error in parsing challenges.
package enum ChallengeError: Error, Hashable, Sendable {
    /// An unexpected character at this offset in bytes, counted from 0.
    case unexpected(at: Int)
    /// A quoted string is not terminated.
    case unendedString
    /// A challenge has two different values for this parameter.
    case duplicate(String)
    /// A limit of ``HTTPChallenge`` is exceeded.
    case tooLarge
}

extension ChallengeError: CustomStringConvertible {
    /// What is wrong, as a phrase within a sentence.
    package var description: String {
        switch self {
        case .unexpected(let offset): "unexpected character at byte \(offset + 1)"
        case .unendedString: "unterminated quoted string"
        case .duplicate(let name): "two different \(name)s in one challenge"
        case .tooLarge: "size limit exceeded"
        }
    }
}
