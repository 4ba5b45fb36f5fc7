import HTTPCore

/// What signed tokens must say, and what is read from them.
package struct SignedTokenRules: Sendable, Hashable {
    /// Who issues them: the value of `iss`.
    package var issuer = ""
    /// For whom they are: a value of `aud`.
    package var audience = ""
    /// The claim that is the user.
    package var userClaim = "sub"
    /// The claim with the groups; `nil` if none are read.
    package var groupsClaim: String?
    /// How far the issuer's clock may be off, in seconds.
    package var leewaySeconds: Int64 = 30
    /// What is put before names of users and groups, so that they are never those of a file, whose
    /// names have no colon.
    package var prefix = "jwt:"

    package static let maximumLeewaySeconds: Int64 = 300
    /// How many groups a token may name.
    static let maximumGroups = 256

    package init() {}

    /// Whether a name may be that of a user or group in a token.
    package func mayName(_ name: String) -> Bool {
        name.utf8.starts(with: prefix.utf8)
            && SignedTokenNames.isUser(name.utf8.dropFirst(prefix.utf8.count))
    }

    /// Who a token is about, if it is genuine, and until when.
    /// - Parameter now: seconds since 1970.
    func read(
        _ claims: JSONValue, at now: Int64
    ) throws(SignedTokenError) -> (user: String, groups: [String], expires: Int64) {
        guard claims[exactly: "iss"]?.isString(issuer) ?? false else { throw .issuer }
        try checkAudience(of: claims)
        guard let end = claims[exactly: "exp"] else { throw .noExpiry }
        let expires = try NumericDate.floor(end) + leewaySeconds
        guard now < expires else { throw .expired }
        if let begin = claims[exactly: "nbf"] {
            guard try NumericDate.ceiling(begin) - leewaySeconds <= now else { throw .notYetValid }
        }
        if let issued = claims[exactly: "iat"] {
            guard try NumericDate.ceiling(issued) - leewaySeconds <= now else {
                throw .issuedLater
            }
        }
        return (try user(of: claims), try groups(of: claims), expires)
    }

    /// `aud` is a string or a list of strings (RFC 7519 §4.1.3). An issuer that writes anything
    /// else into it, or nobody, may mean somebody else.
    private func checkAudience(of claims: JSONValue) throws(SignedTokenError) {
        switch claims[exactly: "aud"] {
        case nil: throw .audience
        case let name? where name.isString(audience): break
        case .string?: throw .audience
        case .array(let names)?:
            let areStrings = names.allSatisfy { if case .string = $0 { true } else { false } }
            guard areStrings, !names.isEmpty else { throw .audienceForm }
            guard names.contains(where: { $0.isString(audience) }) else { throw .audience }
        case .null?, .boolean?, .number?, .object?: throw .audienceForm
        }
    }

    private func user(of claims: JSONValue) throws(SignedTokenError) -> String {
        guard case .string(let name)? = claims[exactly: userClaim],
            SignedTokenNames.isUser(name.utf8[...])
        else { throw .user }
        return prefix + name
    }

    /// A list of strings, or one string with names separated by spaces, as `scope` has them (RFC
    /// 8693 §4.2). A name that cannot be used is not left out: a rule may deny its group.
    private func groups(of claims: JSONValue) throws(SignedTokenError) -> [String] {
        guard let groupsClaim, let claim = claims[exactly: groupsClaim] else { return [] }
        var names: [String] = []
        switch claim {
        case .string(let text):
            names = text.utf8.split(separator: 0x20).map { String(decoding: $0, as: UTF8.self) }
        case .array(let elements):
            for element in elements {
                guard case .string(let name) = element else { throw .groups }
                names.append(name)
            }
        case .null, .boolean, .number, .object: throw .groups
        }
        guard names.count <= Self.maximumGroups, names.allSatisfy(SignedTokenNames.isGroup) else {
            throw .groups
        }
        return names.map { prefix + $0 }
    }
}

/// The names in tokens, which others choose.
enum SignedTokenNames {
    private static let lengths = 1...CredentialLines.maximumNameBytes

    /// Whether some bytes can be a user: visible ASCII without quotation marks and backslashes.
    /// They go into logs, and into a field of requests.
    static func isUser(_ bytes: some Collection<UInt8>) -> Bool {
        lengths.contains(bytes.count)
            && bytes.allSatisfy { byte in
                0x21...0x7E ~= byte && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
            }
    }

    /// The same for a group, which may have spaces inside.
    static func isGroup(_ name: String) -> Bool {
        let bytes = name.utf8
        return lengths.contains(bytes.count) && bytes.first != 0x20 && bytes.last != 0x20
            && bytes.allSatisfy { 0x20...0x7E ~= $0 }
    }
}

/// A number of seconds since 1970 (RFC 7519 §2), which may have a fraction.
enum NumericDate {
    private static let maximumDigits = 12

    static func floor(_ value: JSONValue) throws(SignedTokenError) -> Int64 {
        try parts(of: value).seconds
    }

    static func ceiling(_ value: JSONValue) throws(SignedTokenError) -> Int64 {
        let (seconds, hasFraction) = try parts(of: value)
        return hasFraction ? seconds + 1 : seconds
    }

    /// Neither an exponent nor a time before 1970, which no issuer writes.
    private static func parts(
        of value: JSONValue
    ) throws(SignedTokenError) -> (seconds: Int64, hasFraction: Bool) {
        guard case .number(let text) = value else { throw .malformed }
        let halves = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard let whole = halves.first, (1...maximumDigits).contains(whole.count),
            halves.allSatisfy({ $0.allSatisfy(ASCII.isDigit) }),
            let seconds = Int64(String(decoding: whole, as: UTF8.self))
        else { throw .malformed }
        let hasFraction = halves.dropFirst().contains { $0.contains { $0 != UInt8(ascii: "0") } }
        return (seconds, hasFraction)
    }
}
