import HTTPCore

/// A challenge of the Digest scheme (RFC 7616, section 3.3).
package struct DigestChallenge: Hashable, Sendable {
    /// The quality of protection (`qop`): what the answer protects.
    package enum Protection: String, Hashable, Sendable {
        /// The method and the target.
        case authentication = "auth"
        /// The method, the target and the content.
        case integrity = "auth-int"
    }

    /// The realm, with which the password is hashed.
    package var realm: String { HTTPChallenge.text(realmBytes) }
    /// The realm's bytes as the server sent them, which is how they are hashed and sent back.
    package var realmBytes: [UInt8]
    /// The server's nonce.
    package var nonce: String {
        get { HTTPChallenge.text(nonceBytes) }
        set { nonceBytes = Array(newValue.utf8) }
    }
    /// The nonce's bytes as the server sent them, which is how they are hashed and sent back.
    package var nonceBytes: [UInt8]
    /// The `opaque` parameter, which is sent back unchanged.
    package var opaque: String? { opaqueBytes.map(HTTPChallenge.text) }
    /// The bytes of ``opaque`` as the server sent them.
    package var opaqueBytes: [UInt8]?
    /// Whether the nonce of the last answer was stale, while user and password were not wrong.
    package var isStale: Bool
    /// The algorithm of all hashes in the answer.
    package var algorithm: DigestAlgorithm
    /// The quality of protection, or `nil` for a server that follows RFC 2069 and sends none.
    package var protection: Protection?
    /// Whether only a hash of the user's name is sent.
    package var hashesUser: Bool
    /// The URIs for which the answer is valid. If empty, it is valid for the whole server.
    package var domain: [String]

    /// Reads a Digest challenge. Returns `nil` if the scheme is a different one, the nonce is
    /// missing, or an unknown algorithm or protection is required. If the server offers both
    /// protections, the one that does not need the content is used. As some devices send them, a
    /// missing realm is treated as the empty one, and an empty `qop` as none.
    package init?(_ challenge: HTTPChallenge) {
        let parameters = challenge.parameters
        guard challenge.scheme == "digest", let nonce = challenge.parameterBytes["nonce"],
            let algorithm = DigestAlgorithm(name: parameters["algorithm"] ?? "MD5")
        else { return nil }
        realmBytes = challenge.parameterBytes["realm"] ?? []
        (nonceBytes, self.algorithm) = (nonce, algorithm)
        opaqueBytes = challenge.parameterBytes["opaque"]
        isStale = parameters["stale"]?.lowercasedASCII == "true"
        hashesUser = parameters["userhash"]?.lowercasedASCII == "true"
        domain = (parameters["domain"] ?? "").split(separator: " ").map(String.init)
        let offered = parameters["qop"]?.lowercasedASCII ?? ""
        let names = offered.split { $0 == "," || $0 == " " || $0 == "\t" }
        if !names.isEmpty {
            guard let known = ["auth", "auth-int"].first(where: { names.contains($0[...]) }) else {
                return nil
            }
            protection = Protection(rawValue: known)
        }
    }
}

/// The requests made with one challenge's nonce and with the nonces that follow it.
package struct DigestSession: Hashable, Sendable {
    /// The maximum number of requests with one nonce: the count has eight hexadecimal digits.
    static let maximumCount: UInt32 = .max

    /// The challenge with the current nonce.
    package private(set) var challenge: DigestChallenge
    /// The client's nonce, with enough random bits that no server can predict it.
    package let clientNonce: String
    /// The nonce of the challenge with which the session began.
    private let firstNonce: [UInt8]
    /// The number of requests made with the current nonce.
    package private(set) var nonceCount: UInt32 = 0

    /// - Parameter clientNonce: The client's nonce, made from at least 128 random bits.
    package init(_ challenge: DigestChallenge, clientNonce: String) {
        (self.challenge, self.clientNonce) = (challenge, clientNonce)
        firstNonce = challenge.nonceBytes
    }

    /// Creates a session whose client nonce is made from 128 random bits.
    package init(_ challenge: DigestChallenge, using generator: inout some RandomNumberGenerator) {
        let bits = [
            UInt64.random(in: 0...UInt64.max, using: &generator),
            .random(in: 0...UInt64.max, using: &generator),
        ]
        let bytes = bits.flatMap { word in
            (0..<8).map { UInt8(truncatingIfNeeded: word >> ($0 * 8)) }
        }
        self.init(challenge, clientNonce: Base64.encode(bytes))
    }

    /// Takes the next nonce from an Authentication-Info field.
    ///
    /// - Parameter info: The field's parameters.
    package mutating func take(info: [String: String]) {
        guard let next = info["nextnonce"], next != challenge.nonce else { return }
        challenge.nonce = next
        nonceCount = 0
    }

    /// Returns the field value for the next request.
    ///
    /// - Parameters:
    ///   - target: The target as it appears in the request line.
    ///   - content: The request's content, which is needed only if the challenge protects it, or
    ///     `nil` if it is not in memory as a whole.
    package mutating func authorization(
        method: String, target: String, credentials: UserCredentials, content: [UInt8]? = []
    ) throws(AuthenticationError) -> String {
        let bytes = try authorizationBytes(
            method: method, target: target, credentials: credentials, content: content)
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Returns the field value's bytes. They need not be valid UTF-8, because the server's values
    /// are sent back unchanged.
    package mutating func authorizationBytes(
        method: String, target: String, credentials: UserCredentials, content: [UInt8]? = []
    ) throws(AuthenticationError) -> [UInt8] {
        try credentials.check()
        guard nonceCount < Self.maximumCount else { throw .nonceUsedUp }
        let response = try response(
            count: nonceCount + 1, secret: secret(credentials), method: method, target: target,
            content: content)
        nonceCount += 1
        var parameters = [Array(try user(credentials).utf8)]
        parameters.append(Self.parameter("realm", challenge.realmBytes))
        parameters.append(Self.parameter("nonce", challenge.nonceBytes))
        parameters.append(Self.parameter("uri", Array(target.utf8)))
        parameters.append(Array("response=\"\(response)\"".utf8))
        parameters.append(Array("algorithm=\(challenge.algorithm.rawValue)".utf8))
        if let protection = challenge.protection {
            parameters.append(Array("qop=\(protection.rawValue)".utf8))
            parameters.append(Array("nc=\(String(hexadecimal: nonceCount, digits: 8))".utf8))
        }
        if challenge.protection != nil || challenge.algorithm.isSession {
            parameters.append(Self.parameter("cnonce", Array(clientNonce.utf8)))
        }
        if let opaque = challenge.opaqueBytes {
            parameters.append(Self.parameter("opaque", opaque))
        }
        if challenge.hashesUser { parameters.append(Array("userhash=true".utf8)) }
        return Array("Digest ".utf8) + parameters.joined(separator: ", ".utf8)
    }

    /// The hash of A1 (section 3.4.2).
    private func secret(_ credentials: UserCredentials) throws(AuthenticationError) -> String {
        let algorithm = challenge.algorithm
        let secret = try algorithm.hexadecimal(
            Array("\(credentials.user):".utf8) + challenge.realmBytes
                + Array(":\(credentials.password)".utf8))
        guard algorithm.isSession else { return secret }
        return try algorithm.hexadecimal(
            Array("\(secret):".utf8) + firstNonce + Array(":\(clientNonce)".utf8))
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
        let start = Array("\(secret):".utf8) + challenge.nonceBytes
        guard let protection = challenge.protection else {
            return try algorithm.hexadecimal(start + Array(":\(hash)".utf8))
        }
        let digits = String(hexadecimal: count, digits: 8)
        let middle = "\(digits):\(clientNonce):\(protection.rawValue)"
        return try algorithm.hexadecimal(start + Array(":\(middle):\(hash)".utf8))
    }

    /// The user's name: hashed (section 3.4.4), unchanged, or encoded as in RFC 8187 if it is not
    /// ASCII.
    private func user(_ credentials: UserCredentials) throws(AuthenticationError) -> String {
        let name = credentials.user
        if challenge.hashesUser {
            let hash = try challenge.algorithm.hexadecimal(
                Array("\(name):".utf8) + challenge.realmBytes)
            return "username=\"\(hash)\""
        }
        guard name.utf8.contains(where: { $0 >= 0x80 }) else {
            let parameter = Self.parameter("username", Array(name.utf8))
            return String(decoding: parameter, as: UTF8.self)
        }
        let escaped = PercentCoding.encode(name.utf8) { ASCII.isLetter($0) || ASCII.isDigit($0) }
        return "username*=UTF-8''\(String(decoding: escaped, as: UTF8.self))"
    }

    /// A parameter with a quoted value.
    private static func parameter(_ name: String, _ value: [UInt8]) -> [UInt8] {
        let escaped = value.flatMap { byte -> [UInt8] in
            byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") ? [0x5C, byte] : [byte]
        }
        return Array("\(name)=\"".utf8) + escaped + [UInt8(ascii: "\"")]
    }
}
