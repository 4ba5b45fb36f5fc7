import HTTPCore

/// A JSON Web Token (RFC 7519) in the compact serialization of a signature (RFC 7515 §7.1), of
/// which nothing is verified yet:
///
///     BASE64URL(header) "." BASE64URL(claims) "." BASE64URL(signature)
struct SignedToken {
    /// The longest token, in bytes.
    static let maximumBytes = 16 << 10
    /// The longest header, decoded.
    static let maximumHeaderBytes = 2 << 10

    let algorithm: SignatureAlgorithm
    /// The name of the key, in UTF-8; `nil` if the header names none.
    let keyID: [UInt8]?
    /// The claims: an object.
    let claims: JSONValue
    /// What is signed.
    let input: ArraySlice<UInt8>
    let signature: [UInt8]

    /// Whether a token is meant as one of these: three parts, the first of which is a JSON object
    /// by its ends. It then counts as nothing else, whatever is wrong with it.
    static func isMeant(by token: Span<UInt8>) -> Bool {
        guard let first = ends(ofParts: token)?.first,
            (1...(maximumHeaderBytes / 3 * 4 + 4)).contains(first)
        else { return false }
        let part = (0..<first).map { token[$0] }
        guard let header = Base64.decode(urlSafe: part) else { return false }
        return header.first { !ASCII.isWhitespace($0) } == UInt8(ascii: "{")
            && header.last { !ASCII.isWhitespace($0) } == UInt8(ascii: "}")
    }

    /// Where the first two of three parts end; `nil` if there are more or fewer.
    static func ends(ofParts token: Span<UInt8>) -> (first: Int, second: Int)? {
        var first: Int?
        var second: Int?
        for index in 0..<token.count where token[index] == UInt8(ascii: ".") {
            guard second == nil else { return nil }
            if first == nil { first = index } else { second = index }
        }
        guard let first, let second else { return nil }
        return (first, second)
    }

    /// - Parameter token: the token, without the scheme before it.
    init(_ token: Span<UInt8>) throws(SignedTokenError) {
        guard token.count <= Self.maximumBytes else { throw .tooLong }
        let bytes = (0..<token.count).map { token[$0] }
        guard let ends = Self.ends(ofParts: token),
            let header = Base64.decode(urlSafe: bytes[..<ends.first]),
            let claims = Base64.decode(urlSafe: bytes[(ends.first + 1)..<ends.second]),
            let signature = Base64.decode(urlSafe: bytes[(ends.second + 1)...])
        else { throw .malformed }
        guard header.count <= Self.maximumHeaderBytes,
            signature.count <= VerificationKey.maximumSignatureBytes
        else { throw .tooLong }
        (algorithm, keyID) = try Self.read(header: try Self.object(header))
        self.claims = try Self.object(claims)
        self.signature = signature
        input = bytes[..<ends.second]
    }

    private static func object(_ bytes: [UInt8]) throws(SignedTokenError) -> JSONValue {
        do throws(JSONSyntaxError) {
            let value = try JSONReader.read(bytes[...])
            if case .object = value { return value }
        } catch {
            // Which of two members counts must not be a matter of taste (RFC 7519 §4).
            throw .malformed
        }
        throw .malformed
    }

    /// Members by which a token brings its own key (RFC 7515 §4.1). Nobody believes it, but who
    /// sends them wants to be believed.
    private static let ownKeys = ["jku", "jwk", "x5u", "x5c"]

    private static func read(
        header: JSONValue
    ) throws(SignedTokenError) -> (SignatureAlgorithm, [UInt8]?) {
        guard let name = header[exactly: "alg"] else { throw .malformed }
        let known = SignatureAlgorithm.allCases.first { name.isString($0.rawValue) }
        guard let known else { throw .algorithm }
        // No extension is known, so none may be critical (RFC 7515 §4.1.11). An unencoded payload
        // (RFC 7797) would have to be, and so it is not expected without.
        guard header[exactly: "crit"] == nil, header[exactly: "b64"] == nil else {
            throw .extension
        }
        for name in ownKeys where header[exactly: name] != nil { throw .bringsKey }
        // Neither encrypted nor nested.
        for name in ["enc", "zip", "cty"] where header[exactly: name] != nil { throw .type }
        if let type = header[exactly: "typ"] { try check(type: type) }
        guard let id = header[exactly: "kid"] else { return (known, nil) }
        guard case .string(let text) = id, text.utf8.count <= KeyFile.maximumIDBytes else {
            throw .malformed
        }
        return (known, Array(text.utf8))
    }

    /// A token of another kind, such as one that tells of a logout, must not be taken for one that
    /// lets somebody in (RFC 8725 §3.11).
    private static func check(type: JSONValue) throws(SignedTokenError) {
        guard case .string(let text) = type else { throw .malformed }
        let lowercase = text.utf8.map(ASCII.lowercased)
        var name = lowercase[...]
        if name.starts(with: "application/".utf8) { name = name.dropFirst(12) }
        guard name.elementsEqual("jwt".utf8) || name.elementsEqual("at+jwt".utf8) else {
            throw .type
        }
    }
}

/// Why a signed token proves nothing.
package enum SignedTokenError: Error, Sendable, Equatable, CaseIterable {
    case tooLong
    /// Not three parts in base64url, not two JSON objects, or a member of another type.
    case malformed
    case algorithm
    case `extension`
    case bringsKey
    case type
    case unknownKey
    case issuer
    case audience
    /// `aud` is neither a string nor a list of strings with a member.
    case audienceForm
    case noExpiry
    case expired
    case notYetValid
    case issuedLater
    case user
    case groups
    case signature

    /// What is wrong, for the log.
    package var text: String {
        switch self {
        case .tooLong: "it is too long"
        case .malformed: "it is malformed"
        case .algorithm: "its algorithm is not RS256, ES256 or EdDSA"
        case .extension: "it has an extension that is critical"
        case .bringsKey: "it brings its own key"
        case .type: "it is not of type JWT or at+jwt"
        case .unknownKey: "no key for its kid and algorithm is configured"
        case .issuer: "its issuer is another one"
        case .audience: "it is for another audience"
        case .audienceForm: "its audience is neither a string nor a list of strings"
        case .noExpiry: "it does not say when it expires"
        case .expired: "it has expired"
        case .notYetValid: "it is not valid yet"
        case .issuedLater: "it was issued in the future"
        case .user: "the claim for the user is missing, or not usable as a name"
        case .groups: "the claim for the groups is not usable as names"
        case .signature: "its signature is wrong"
        }
    }
}
