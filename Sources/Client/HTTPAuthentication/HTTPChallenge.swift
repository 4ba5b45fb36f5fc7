import HTTPCore

/// One challenge of a WWW-Authenticate or Proxy-Authenticate field (RFC 9110, section 11).
///
///     challenge   = auth-scheme [ 1*SP ( token68 / #auth-param ) ]
///     auth-param  = token BWS "=" BWS ( token / quoted-string )
///     token68     = 1*( ALPHA / DIGIT / "-" / "." / "_" / "~" / "+" / "/" ) *"="
///
/// An Authentication-Info field is such a list of parameters, without a scheme. Some devices send
/// what the grammar does not allow; ``ChallengeReader`` says what of it is read.
public struct HTTPChallenge: Hashable, Sendable {
    /// Bytes of all fields of a response together.
    public static let maximumBytes = 65_536
    /// Challenges in them.
    public static let maximumChallenges = 32
    /// Parameters of one challenge.
    public static let maximumParameters = 64

    /// In lower case: `basic`, `digest`, `negotiate`.
    public var scheme: String
    /// What stands behind the scheme in place of parameters.
    public var token68: String?
    /// By their names in lower case; what was quoted, without quotes and escapes.
    public var parameters: [String: String] {
        get { parameterBytes.mapValues(Self.text) }
        set { parameterBytes = newValue.mapValues { Array($0.utf8) } }
    }
    /// The same as the server sent it, which need not be UTF-8: some are to be sent back.
    public var parameterBytes: [String: [UInt8]]

    /// A challenge put together by hand.
    public init(scheme: String, token68: String? = nil, parameters: [String: String] = [:]) {
        self.scheme = scheme.lowercasedASCII
        self.token68 = token68
        parameterBytes = parameters.mapValues { Array($0.utf8) }
    }

    /// What is not UTF-8 is ISO 8859-1, as it once was by RFC 2616.
    static func text(_ bytes: [UInt8]) -> String {
        String(validating: bytes, as: UTF8.self)
            ?? String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
    }

    /// The realm, which most schemes have.
    public var realm: String? { parameterBytes["realm"].map(Self.text) }

    /// The challenges of all fields of one name, in their order.
    public static func parse(
        _ fields: [String]
    ) throws(ChallengeError) -> [HTTPChallenge] {
        try parse(fields.map { Array($0.utf8) })
    }

    /// The challenges of all fields of one name, in their order, as bytes that need not be UTF-8.
    public static func parse(
        _ fields: [[UInt8]]
    ) throws(ChallengeError) -> [HTTPChallenge] {
        // Several fields are one list (RFC 9110, section 5.3).
        var reader = try ChallengeReader(Array(fields.joined(separator: ",".utf8)))
        return try reader.challenges()
    }

    /// The challenges of one field.
    public static func parse(
        _ field: String
    ) throws(ChallengeError) -> [HTTPChallenge] { try parse([field]) }

    /// The parameters of an Authentication-Info or Proxy-Authentication-Info field (RFC 9110,
    /// section 11.6.3), by their names in lower case.
    public static func parse(info field: String) throws(ChallengeError) -> [String: String] {
        var reader = try ChallengeReader(Array(field.utf8))
        return try reader.info().mapValues(text)
    }
}

/// Why a field has no challenges that can be read.
public enum ChallengeError: Error, Hashable, Sendable {
    /// A character that has no place there, counted in bytes from 0.
    case unexpected(at: Int)
    /// A quoted string has no end.
    case unendedString
    /// A challenge names two realms.
    case duplicate(String)
    /// More than the limits of ``HTTPChallenge`` say.
    case tooLarge
}

extension ChallengeError: CustomStringConvertible {
    /// What is wrong, for a sentence.
    public var description: String {
        switch self {
        case .unexpected(let offset): "a character that has no place there at byte \(offset + 1)"
        case .unendedString: "a quoted text that has no end"
        case .duplicate(let name): "two different \(name)s in one challenge"
        case .tooLarge: "more than is read"
        }
    }
}
