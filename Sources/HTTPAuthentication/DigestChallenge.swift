import Notation

/// A challenge of the Digest scheme (RFC 7616, section 3.3).
public struct DigestChallenge: Hashable, Sendable {
    /// What an answer protects.
    public enum Protection: String, Hashable, Sendable {
        /// The method and the target.
        case authentication = "auth"
        /// The content, too.
        case integrity = "auth-int"
    }

    /// What the password is hashed with.
    public var realm: String
    /// The server's number for one time.
    public var nonce: String
    /// To be sent back as it is.
    public var opaque: String?
    /// The nonce of the last answer was too old; user and password were not wrong.
    public var isStale: Bool
    /// Of all hashes of the answer.
    public var algorithm: DigestAlgorithm
    /// Nil: the server is of RFC 2069 and names none.
    public var protection: Protection?
    /// Whether the user's name is sent as its hash only.
    public var hashesUser: Bool
    /// The URIs that the answer is for; empty: all of the server.
    public var domain: [String]

    /// Nil: it is of another scheme, lacks a realm or a nonce, or asks for what is not known here.
    /// Of two protections the one that needs no content is taken.
    public init?(_ challenge: AuthenticationChallenge) {
        let parameters = challenge.parameters
        guard challenge.scheme == "digest", let realm = challenge.realm,
            let nonce = parameters["nonce"],
            let algorithm = DigestAlgorithm(name: parameters["algorithm"] ?? "MD5")
        else { return nil }
        (self.realm, self.nonce, self.algorithm) = (realm, nonce, algorithm)
        opaque = parameters["opaque"]
        isStale = parameters["stale"]?.lowercasedASCII == "true"
        hashesUser = parameters["userhash"]?.lowercasedASCII == "true"
        domain = (parameters["domain"] ?? "").split(separator: " ").map(String.init)
        if let offered = parameters["qop"] {
            let names = offered.lowercasedASCII.split { $0 == "," || $0 == " " || $0 == "\t" }
            guard let known = ["auth", "auth-int"].first(where: { names.contains($0[...]) }) else {
                return nil
            }
            protection = Protection(rawValue: known)
        }
    }
}

/// The requests that are made with one challenge's nonce, and those that follow it.
public struct DigestSession: Hashable, Sendable {
    /// Requests with one nonce: the count has eight hexadecimal digits.
    static let maximumCount: UInt32 = .max

    /// With the nonce in force.
    public private(set) var challenge: DigestChallenge
    /// The client's nonce: of so many random bits that no server can foresee it.
    public let clientNonce: String
    /// Of the challenge that the session began with.
    private let firstNonce: String
    /// Requests that were made with the nonce in force.
    public private(set) var nonceCount: UInt32 = 0

    /// - Parameter clientNonce: of 128 random bits at least.
    public init(_ challenge: DigestChallenge, clientNonce: String) {
        (self.challenge, self.clientNonce) = (challenge, clientNonce)
        firstNonce = challenge.nonce
    }

    /// A session whose nonce is of 128 bits of a generator's.
    public init(_ challenge: DigestChallenge, using generator: inout some RandomNumberGenerator) {
        let bits = [
            UInt64.random(in: 0...UInt64.max, using: &generator),
            .random(in: 0...UInt64.max, using: &generator),
        ]
        let bytes = bits.flatMap { word in
            (0..<8).map { UInt8(truncatingIfNeeded: word >> ($0 * 8)) }
        }
        self.init(challenge, clientNonce: Base64.encode(bytes))
    }

    /// Takes the nonce that an Authentication-Info field names for the next request.
    ///
    /// - Parameter info: the field's parameters.
    public mutating func take(info: [String: String]) {
        guard let next = info["nextnonce"], next != challenge.nonce else { return }
        challenge.nonce = next
        nonceCount = 0
    }

    /// The field value of the next request.
    ///
    /// - Parameters:
    ///   - target: as the request line has it.
    ///   - content: the request's; needed only where the challenge protects it. Nil: it is not
    ///     there as a whole.
    public mutating func authorization(
        method: String, target: String, credentials: UserCredentials, content: [UInt8]? = []
    ) throws(AuthenticationError) -> String {
        try credentials.check()
        guard nonceCount < Self.maximumCount else { throw .nonceUsedUp }
        let response = try response(
            count: nonceCount + 1, secret: secret(credentials), method: method, target: target,
            content: content)
        nonceCount += 1
        var parameters = [try user(credentials)]
        parameters.append("realm=\(Self.quoted(challenge.realm))")
        parameters.append("nonce=\(Self.quoted(challenge.nonce))")
        parameters.append("uri=\(Self.quoted(target))")
        parameters.append("response=\"\(response)\"")
        parameters.append("algorithm=\(challenge.algorithm.rawValue)")
        if let protection = challenge.protection {
            parameters.append("qop=\(protection.rawValue)")
            parameters.append("nc=\(Self.digits(nonceCount))")
        }
        if challenge.protection != nil || challenge.algorithm.isSession {
            parameters.append("cnonce=\(Self.quoted(clientNonce))")
        }
        if let opaque = challenge.opaque { parameters.append("opaque=\(Self.quoted(opaque))") }
        if challenge.hashesUser { parameters.append("userhash=true") }
        return "Digest " + parameters.joined(separator: ", ")
    }

    /// The hash of A1 (section 3.4.2).
    private func secret(_ credentials: UserCredentials) throws(AuthenticationError) -> String {
        let algorithm = challenge.algorithm
        let text = "\(credentials.user):\(challenge.realm):\(credentials.password)"
        let secret = try algorithm.hexadecimal(text)
        guard algorithm.isSession else { return secret }
        return try algorithm.hexadecimal("\(secret):\(firstNonce):\(clientNonce)")
    }

    /// The response (section 3.4.1) with the hash of A2 (section 3.4.3).
    private func response(
        count: UInt32, secret: String, method: String, target: String, content: [UInt8]?
    ) throws(AuthenticationError) -> String {
        let algorithm = challenge.algorithm
        var request = "\(method):\(target)"
        if challenge.protection == .integrity {
            guard let content else { throw .contentNeeded }
            request += ":\(try algorithm.hexadecimal(content))"
        }
        let hash = try algorithm.hexadecimal(request)
        guard let protection = challenge.protection else {
            return try algorithm.hexadecimal("\(secret):\(challenge.nonce):\(hash)")
        }
        let middle = "\(Self.digits(count)):\(clientNonce):\(protection.rawValue)"
        return try algorithm.hexadecimal("\(secret):\(challenge.nonce):\(middle):\(hash)")
    }

    /// The user's name: its hash (section 3.4.4), as it is, or by RFC 8187 where not in ASCII.
    private func user(_ credentials: UserCredentials) throws(AuthenticationError) -> String {
        let name = credentials.user
        if challenge.hashesUser {
            return
                "username=\"\(try challenge.algorithm.hexadecimal("\(name):\(challenge.realm)"))\""
        }
        guard name.utf8.contains(where: { $0 >= 0x80 }) else {
            return "username=\(Self.quoted(name))"
        }
        let escaped = PercentCoding.encode(name.utf8) { ASCII.isLetter($0) || ASCII.isDigit($0) }
        return "username*=UTF-8''\(String(decoding: escaped, as: UTF8.self))"
    }

    private static func quoted(_ text: String) -> String {
        let bytes = text.utf8.flatMap { byte -> [UInt8] in
            byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") ? [0x5C, byte] : [byte]
        }
        return "\"\(String(decoding: bytes, as: UTF8.self))\""
    }

    private static func digits(_ count: UInt32) -> String {
        let text = String(count, radix: 16)
        return String(repeating: "0", count: 8 - text.utf8.count) + text
    }
}
