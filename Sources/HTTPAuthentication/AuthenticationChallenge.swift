import Notation

/// One challenge of a WWW-Authenticate or Proxy-Authenticate field (RFC 9110, section 11).
///
///     challenge   = auth-scheme [ 1*SP ( token68 / #auth-param ) ]
///     auth-param  = token BWS "=" BWS ( token / quoted-string )
///     token68     = 1*( ALPHA / DIGIT / "-" / "." / "_" / "~" / "+" / "/" ) *"="
///
/// An Authentication-Info field is such a list of parameters, without a scheme.
public struct AuthenticationChallenge: Hashable, Sendable {
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
    ) throws(ChallengeError) -> [AuthenticationChallenge] {
        try parse(fields.map { Array($0.utf8) })
    }

    /// The challenges of all fields of one name, in their order, as bytes that need not be UTF-8.
    public static func parse(
        _ fields: [[UInt8]]
    ) throws(ChallengeError) -> [AuthenticationChallenge] {
        // Several fields are one list (RFC 9110, section 5.3).
        var reader = try ChallengeReader(Array(fields.joined(separator: ",".utf8)))
        return try reader.challenges()
    }

    /// The challenges of one field.
    public static func parse(
        _ field: String
    ) throws(ChallengeError) -> [AuthenticationChallenge] { try parse([field]) }

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
    /// A challenge has two parameters of a name.
    case duplicate(String)
    /// More than the limits of ``AuthenticationChallenge`` say.
    case tooLarge
}

/// Goes once over the bytes.
private struct ChallengeReader {
    private let bytes: [UInt8]
    private var position = 0

    init(_ bytes: [UInt8]) throws(ChallengeError) {
        self.bytes = bytes
        guard bytes.count <= AuthenticationChallenge.maximumBytes else { throw .tooLarge }
    }

    mutating func challenges() throws(ChallengeError) -> [AuthenticationChallenge] {
        var found: [AuthenticationChallenge] = []
        skip(alsoCommas: true)
        while position < bytes.count {
            guard found.count < AuthenticationChallenge.maximumChallenges else { throw .tooLarge }
            var challenge = AuthenticationChallenge(scheme: try token())
            let hasSpace = peek == 0x20 || peek == 0x09
            skip()
            if let peek, peek != UInt8(ascii: ",") {
                guard hasSpace else { throw .unexpected(at: position) }
                challenge.token68 = takeToken68()
                if challenge.token68 == nil { try parameters(into: &challenge.parameterBytes) }
            } else if hasComma {
                // `Scheme , name=value`: the list's first member is empty.
                try parameters(into: &challenge.parameterBytes)
            }
            found.append(challenge)
            guard position == bytes.count || hasComma else { throw .unexpected(at: position) }
            skip(alsoCommas: true)
        }
        return found
    }

    mutating func info() throws(ChallengeError) -> [String: [UInt8]] {
        var found: [String: [UInt8]] = [:]
        try parameters(into: &found)
        skip(alsoCommas: true)
        guard position == bytes.count else { throw .unexpected(at: position) }
        return found
    }

    /// Takes parameters up to the comma before a token that no `=` follows: the next scheme.
    private mutating func parameters(
        into found: inout [String: [UInt8]]
    ) throws(ChallengeError) {
        while true {
            let start = position
            skip(alsoCommas: true)
            guard position < bytes.count else { return }
            let name = try token().lowercasedASCII
            skip()
            guard peek == UInt8(ascii: "=") else {
                position = start
                return
            }
            position += 1
            skip()
            let value = peek == UInt8(ascii: "\"") ? try quoted() : Array(try token().utf8)
            guard found.count < AuthenticationChallenge.maximumParameters else { throw .tooLarge }
            guard found.updateValue(value, forKey: name) == nil else { throw .duplicate(name) }
            skip()
            guard position == bytes.count || hasComma else { throw .unexpected(at: position) }
        }
    }

    /// Characters and then `=`, up to a comma or the end; nil: something else, not taken.
    private mutating func takeToken68() -> String? {
        let start = position
        while let peek, Self.isToken68(peek) { position += 1 }
        guard position > start else { return nil }
        while peek == UInt8(ascii: "=") { position += 1 }
        let text = String(decoding: bytes[start..<position], as: UTF8.self)
        skip()
        guard position == bytes.count || hasComma else {
            position = start
            return nil
        }
        return text
    }

    private mutating func quoted() throws(ChallengeError) -> [UInt8] {
        position += 1
        var text: [UInt8] = []
        while let byte = peek {
            position += 1
            switch byte {
            case UInt8(ascii: "\""): return text
            case UInt8(ascii: "\\"):
                guard let escaped = peek, Self.isQuotable(escaped) else { break }
                position += 1
                text.append(escaped)
                continue
            case _ where Self.isQuotable(byte):
                text.append(byte)
                continue
            default: break
            }
            throw position == bytes.count ? .unendedString : .unexpected(at: position - 1)
        }
        throw .unendedString
    }

    private mutating func token() throws(ChallengeError) -> String {
        let start = position
        while let peek, ASCII.isToken(peek) { position += 1 }
        guard position > start else { throw .unexpected(at: position) }
        return String(decoding: bytes[start..<position], as: UTF8.self)
    }

    private mutating func skip(alsoCommas: Bool = false) {
        while let peek, ASCII.isWhitespace(peek) || alsoCommas && hasComma { position += 1 }
    }

    private var peek: UInt8? { position < bytes.count ? bytes[position] : nil }
    private var hasComma: Bool { peek == UInt8(ascii: ",") }

    private static func isQuotable(_ byte: UInt8) -> Bool {
        byte == 0x09 || byte >= 0x20 && byte != 0x7F
    }

    private static func isToken68(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x2B, 0x2D...0x2F, 0x5F, 0x7E: true
        default: ASCII.isLetter(byte) || ASCII.isDigit(byte)
        }
    }
}
