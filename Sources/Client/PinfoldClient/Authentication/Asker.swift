import HTTPAuthentication
import HTTPCore
import HTTPTypes

/// Who asks for credentials, and by which fields: a server (401) or a proxy (407).
struct Asker: Sendable {
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

    /// Without a realm.
    var space: ProtectionSpace {
        ProtectionSpace(Authenticator.Space(origin: origin, realm: ""))
    }

    /// Where it is answered.
    var field: HTTPField.Name { isProxy ? .proxyAuthorization : .authorization }

    /// The challenges of a response. Where one field cannot be read, the others count.
    ///
    /// - Throws: ``UnreadableChallenges`` where that is so with each.
    func challenges(
        of response: HTTPResponse
    ) throws(UnreadableChallenges) -> [HTTPChallenge] {
        try Self.challenges(of: response, isProxy: isProxy)
    }

    private static func challenges(
        of response: HTTPResponse, isProxy: Bool
    ) throws(UnreadableChallenges) -> [HTTPChallenge] {
        typealias Challenge = HTTPChallenge
        let name: HTTPField.Name = isProxy ? .proxyAuthenticate : .wwwAuthenticate
        let fields = response.headerFields.bytes(of: name)
        if let all = try? Challenge.parse(fields) { return all }
        var found: [Challenge] = []
        var unreadable: [UnreadableChallenges] = []
        for (index, field) in fields.enumerated() {
            do throws(ChallengeError) { found += try Challenge.parse([field]) } catch {
                let value = response.headerFields[values: name][index]
                unreadable.append(UnreadableChallenges(field: name, value: value, error: error))
            }
        }
        let told = unreadable.first { $0.isAnswerable } ?? unreadable.first
        if let told, found.isEmpty { throw told }
        return found
    }

    /// Why a proxy's challenges cannot be read; nil: they can.
    static func problem(ofProxy response: HTTPResponse) -> UnreadableChallenges? {
        do throws(UnreadableChallenges) {
            _ = try challenges(of: response, isProxy: true)
            return nil
        } catch { return error }
    }

    /// What a server says to an answer that it has accepted (RFC 9110 section 11.6.3). Of a proxy
    /// the engine hands on none: it names its next nonce by another challenge.
    func info(of response: HTTPResponse) -> [String: String]? {
        guard !isProxy, let field = response.headerFields[.authenticationInfo] else { return nil }
        return try? HTTPChallenge.parse(info: field)
    }

    /// A request as the authenticator is asked about it: the target is in origin-form for a
    /// server, and in absolute-form for a proxy, as each gets it (RFC 9112 section 3.2).
    func question(_ request: HTTPRequest, _ content: RequestContent?) -> Authenticator.Request {
        let target = isProxy ? request.url : request.path ?? "/"
        return Authenticator.Request(
            origin: origin, method: request.method.rawValue, target: target,
            content: content.map { $0.bytesInMemory } ?? [])
    }

    /// A request as the engine is about to send it to a proxy.
    func question(_ method: String, _ target: String) -> Authenticator.Request {
        Authenticator.Request(
            origin: origin, method: method, target: target,
            content: method == "CONNECT" ? [] : nil)
    }
}

/// A response asks for credentials, and nobody can tell how.
struct UnreadableChallenges: Error, CustomStringConvertible {
    let field: HTTPField.Name
    /// That of the first field that could have been answered, else of the first.
    let value: String
    let error: ChallengeError

    /// It begins with a scheme that is known here: whoever has credentials could have answered it.
    var isAnswerable: Bool {
        let start = value.utf8.drop { ASCII.isWhitespace($0) || $0 == UInt8(ascii: ",") }
        let scheme = String(Substring(start.prefix(while: ASCII.isToken))).lowercasedASCII
        return scheme == "basic" || scheme == "digest"
    }

    var description: String {
        "the challenge cannot be read: \(error) of \(field.rawName): \(value.prefix(200))"
    }
}

extension RequestContent {
    /// All of it; nil where it is not in memory.
    var bytesInMemory: [UInt8]? {
        if case .bytes(let bytes) = source { return bytes }
        return length == 0 ? [] : nil
    }
}
