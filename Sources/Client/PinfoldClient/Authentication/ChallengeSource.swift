import HTTPCore
import HTTPTypes

/// The sender of challenges, a server (401) or a proxy (407), and the fields used with it.
struct ChallengeSource: Sendable {
    let origin: Authenticator.Origin
    let isProxy: Bool

    init(_ origin: RequestOrigin, isProxy: Bool) {
        self.origin = ProtectionSpace(origin, realm: "", isProxy: isProxy).origin
        self.isProxy = isProxy
    }

    init(_ origin: Authenticator.Origin, isProxy: Bool) {
        self.origin = origin
        self.isProxy = isProxy
    }

    /// The protection space without a realm.
    var space: ProtectionSpace {
        ProtectionSpace(Authenticator.Space(origin: origin, realm: ""))
    }

    /// The request field that carries the answer.
    var field: HTTPField.Name { isProxy ? .proxyAuthorization : .authorization }

    /// Returns the challenges of a response. If only some fields can be parsed, returns their
    /// challenges.
    ///
    /// - Throws: ``UnreadableChallengesError`` if no field can be parsed.
    func challenges(
        of response: HTTPResponse
    ) throws(UnreadableChallengesError) -> [HTTPChallenge] {
        try Self.challenges(of: response, isProxy: isProxy)
    }

    private static func challenges(
        of response: HTTPResponse, isProxy: Bool
    ) throws(UnreadableChallengesError) -> [HTTPChallenge] {
        typealias Challenge = HTTPChallenge
        let name: HTTPField.Name = isProxy ? .proxyAuthenticate : .wwwAuthenticate
        let fields = response.headerFields.bytes(of: name)
        if let all = try? Challenge.parse(fields) { return all }
        var found: [Challenge] = []
        var unreadable: [UnreadableChallengesError] = []
        for (index, field) in fields.enumerated() {
            do throws(ChallengeError) { found += try Challenge.parse([field]) } catch {
                let value = response.headerFields[values: name][index]
                unreadable.append(
                    UnreadableChallengesError(field: name, value: value, error: error))
            }
        }
        let reported = unreadable.first { $0.isAnswerable } ?? unreadable.first
        if let reported, found.isEmpty { throw reported }
        return found
    }

    /// Returns why a proxy's challenges cannot be parsed, or `nil` if they can.
    static func error(ofProxy response: HTTPResponse) -> UnreadableChallengesError? {
        do throws(UnreadableChallengesError) {
            _ = try challenges(of: response, isProxy: true)
            return nil
        } catch { return error }
    }

    /// Returns the parameters of a server's Authentication-Info field, sent in response to valid
    /// credentials (RFC 9110 section 11.6.3). The engine does not pass on such a field from a
    /// proxy, which announces its next nonce by another challenge.
    func info(of response: HTTPResponse) -> [String: String]? {
        guard !isProxy, let field = response.headerFields[.authenticationInfo] else { return nil }
        return try? HTTPChallenge.parse(info: field)
    }

    /// Returns a request in the form that the authenticator needs: with its target in origin-form
    /// for a server, and in absolute-form for a proxy, as each receives it (RFC 9112 section 3.2).
    func request(_ request: HTTPRequest, _ content: RequestContent?) -> Authenticator.Request {
        let target = isProxy ? request.url : request.path ?? "/"
        return Authenticator.Request(
            origin: origin, method: request.method.rawValue, target: target,
            content: content.map { $0.bytesInMemory } ?? [])
    }

    /// Returns a request that the engine is about to send to a proxy.
    func request(_ method: String, _ target: String) -> Authenticator.Request {
        Authenticator.Request(
            origin: origin, method: method, target: target,
            content: method == "CONNECT" ? [] : nil)
    }
}

/// A response requires credentials, but its challenges cannot be parsed.
struct UnreadableChallengesError: Error, CustomStringConvertible {
    let field: HTTPField.Name
    /// The value of the first field with a supported scheme, or else of the first field.
    let value: String
    let error: ChallengeError

    /// Whether the field begins with a supported scheme, so that credentials would have been of
    /// use.
    var isAnswerable: Bool {
        let start = value.utf8.drop { ASCII.isWhitespace($0) || $0 == UInt8(ascii: ",") }
        let scheme = String(Substring(start.prefix(while: ASCII.isToken))).lowercasedASCII
        return scheme == "basic" || scheme == "digest"
    }

    var description: String {
        "the challenge cannot be parsed: \(error) in \(field.rawName): \(value.prefix(200))"
    }
}

extension RequestContent {
    /// The whole content, or `nil` if it is not in memory.
    var bytesInMemory: [UInt8]? {
        if case .bytes(let bytes) = source { return bytes }
        return length == 0 ? [] : nil
    }
}
