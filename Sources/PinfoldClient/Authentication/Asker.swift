import HTTPAuthentication
import HTTPTypes

/// Who asks for credentials, and by which fields: a server (401) or a proxy (407).
struct Asker: Sendable {
    let origin: HTTPAuthentication.ProtectionSpace.Origin
    let isProxy: Bool

    init(_ origin: RequestOrigin, isProxy: Bool) {
        self.origin = ProtectionSpace(origin, realm: "", isProxy: isProxy).origin
        self.isProxy = isProxy
    }

    init(_ origin: HTTPAuthentication.ProtectionSpace.Origin, isProxy: Bool) {
        self.origin = origin
        self.isProxy = isProxy
    }

    /// Where it is answered.
    var field: HTTPField.Name { isProxy ? .proxyAuthorization : .authorization }

    /// The challenges of a response. Where one field cannot be read, the others count.
    ///
    /// - Throws: ``UnreadableChallenges`` where that is so with each.
    func challenges(
        of response: HTTPResponse
    ) throws(UnreadableChallenges) -> [HTTPAuthentication.AuthenticationChallenge] {
        typealias Challenge = HTTPAuthentication.AuthenticationChallenge
        let name: HTTPField.Name = isProxy ? .proxyAuthenticate : .wwwAuthenticate
        let fields = response.headerFields.bytes(of: name)
        if let all = try? Challenge.parse(fields) { return all }
        var found: [Challenge] = []
        var first: UnreadableChallenges?
        for (index, field) in fields.enumerated() {
            do throws(ChallengeError) {
                found += try Challenge.parse([field])
            } catch  where first == nil {
                let value = response.headerFields[values: name][index]
                first = UnreadableChallenges(field: name, value: value, error: error)
            } catch {}
        }
        if let first, found.isEmpty { throw first }
        return found
    }

    /// What a server says to an answer that it has accepted (RFC 9110 section 11.6.3). Of a proxy
    /// the engine hands on none: it names its next nonce by another challenge.
    func info(of response: HTTPResponse) -> [String: String]? {
        guard !isProxy, let field = response.headerFields[.authenticationInfo] else { return nil }
        return try? HTTPAuthentication.AuthenticationChallenge.parse(info: field)
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
    /// The first one's.
    let value: String
    let error: ChallengeError

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
