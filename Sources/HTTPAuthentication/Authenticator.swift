/// Answers challenges, and knows for which requests an answer can go along before one is asked.
///
/// A value: it makes no requests and asks nobody. Of what a server offers, the strongest scheme is
/// taken for which there are credentials: Digest with the longest hash, then Basic.
public struct Authenticator: Sendable {
    /// Origins that are remembered, and protection spaces with credentials.
    public static let maximumSpaces = 1024

    /// A scheme that is known here.
    public enum Scheme: Hashable, Sendable, CaseIterable {
        /// RFC 7617, and RFC 7616.
        case basic, digest
    }

    /// What to do about a response with challenges.
    public enum Decision: Hashable, Sendable {
        /// Make the request again with this field value (Authorization or Proxy-Authorization).
        case answer(String)
        /// There are no credentials for any of these, the strongest first. Once they are set, the
        /// same challenges can be decided again.
        case needsCredentials([ProtectionSpace])
        /// The credentials that there are were sent, and are wrong: they are forgotten.
        case rejected(ProtectionSpace)
        /// Only schemes that are not known, or not allowed.
        case notSupported([String])
    }

    /// What is asked about a request.
    public struct Request: Hashable, Sendable {
        /// Whom it is made to: the proxy for a Proxy-Authorization.
        public var origin: ProtectionSpace.Origin
        /// As the request line has it.
        public var method: String
        /// As the request line has it.
        public var target: String
        /// Nil: it is not there as a whole.
        public var content: [UInt8]?

        /// A request, without content unless that is named.
        public init(
            origin: ProtectionSpace.Origin, method: String, target: String, content: [UInt8]? = []
        ) {
            (self.origin, self.method) = (origin, method)
            (self.target, self.content) = (target, content)
        }
    }

    /// What was answered last to an origin.
    private struct Answered: Sendable {
        var realm: String
        var credentials: UserCredentials
        var method: Method
        /// Grows with each answer.
        var order: UInt64

        enum Method: Sendable {
            /// With the paths below which it goes along.
            case basic([String])
            case digest(DigestSession)
        }
    }

    /// Without Basic, no password goes over a connection in a form that can be read.
    public var allowedSchemes: Set<Scheme>
    private var credentials: [ProtectionSpace: UserCredentials] = [:]
    private var answered: [ProtectionSpace.Origin: Answered] = [:]
    private var nextOrder: UInt64 = 0

    /// Without any credentials.
    public init(allowedSchemes: Set<Scheme> = Set(Scheme.allCases)) {
        self.allowedSchemes = allowedSchemes
    }

    /// Sets the credentials of a protection space; nil removes them. Beyond ``maximumSpaces`` new
    /// ones are not taken.
    public mutating func set(_ credentials: UserCredentials?, for space: ProtectionSpace) {
        guard self.credentials.count < Self.maximumSpaces || self.credentials[space] != nil else {
            return
        }
        self.credentials[space] = credentials
        if answered[space.origin]?.realm == space.realm { answered[space.origin] = nil }
    }

    /// The field value that a request takes along unasked: to what the last answer was for
    /// (RFC 7617, section 2.2; RFC 7616, section 3.3). Nil: it waits for a challenge.
    public mutating func authorization(
        for request: Request
    ) throws(AuthenticationError) -> String? {
        guard var last = answered[request.origin] else { return nil }
        switch last.method {
        case .basic(let paths):
            let path = Self.path(of: request.target)
            guard request.origin.isProxy || paths.contains(where: { path.hasPrefix($0) }) else {
                return nil
            }
            return try last.credentials.basic()
        case .digest(var session):
            guard Self.covers(session.challenge, request) else { return nil }
            let value = try session.authorization(
                method: request.method, target: request.target, credentials: last.credentials,
                content: request.content)
            last.method = .digest(session)
            answered[request.origin] = last
            return value
        }
    }

    /// Decides about the challenges of a 401 or 407.
    ///
    /// - Parameters:
    ///   - sent: whether the request had a field value of this authenticator.
    ///   - generator: for the client's nonce.
    public mutating func decide(
        _ challenges: [AuthenticationChallenge], for request: Request, sent: Bool,
        using generator: inout some RandomNumberGenerator
    ) throws(AuthenticationError) -> Decision {
        let offers = Self.known(challenges).filter { allowedSchemes.contains($0.scheme) }
        guard !offers.isEmpty else { return .notSupported(challenges.map(\.scheme)) }
        for offer in offers {
            let space = ProtectionSpace(origin: request.origin, realm: offer.realm)
            guard let found = credentials[space] else { continue }
            if sent, isRefused(offer, found, at: request.origin) {
                credentials[space] = nil
                answered[request.origin] = nil
                return .rejected(space)
            }
            return .answer(try answer(offer, found, request, using: &generator))
        }
        return .needsCredentials(
            offers.map { ProtectionSpace(origin: request.origin, realm: $0.realm) })
    }

    /// Takes the parameters of an Authentication-Info or Proxy-Authentication-Info field.
    public mutating func take(info: [String: String], from origin: ProtectionSpace.Origin) {
        guard var last = answered[origin], case .digest(var session) = last.method else { return }
        session.take(info: info)
        last.method = .digest(session)
        answered[origin] = last
    }
}

// MARK: - Offers and answers

extension Authenticator {
    private enum Offer {
        case basic(realm: String)
        case digest(DigestChallenge)

        var scheme: Scheme {
            switch self {
            case .basic: .basic
            case .digest: .digest
            }
        }

        var realm: String {
            switch self {
            case .basic(let realm): realm
            case .digest(let challenge): challenge.realm
            }
        }

        /// The larger, the better it keeps the password.
        var strength: Int {
            switch self {
            case .basic: -1
            case .digest(let challenge): challenge.algorithm.strength
            }
        }
    }

    /// What is known of the challenges, the strongest first, and of two the one that came first.
    private static func known(_ challenges: [AuthenticationChallenge]) -> [Offer] {
        let offers = challenges.compactMap { challenge -> Offer? in
            if challenge.scheme == "basic" { return challenge.realm.map { .basic(realm: $0) } }
            return DigestChallenge(challenge).map { .digest($0) }
        }
        return offers.enumerated().sorted {
            ($1.element.strength, $0.offset) < ($0.element.strength, $1.offset)
        }.map(\.element)
    }

    /// Whether the last answer was to this realm with these credentials, and its nonce not too old.
    private func isRefused(
        _ offer: Offer, _ found: UserCredentials, at origin: ProtectionSpace.Origin
    ) -> Bool {
        guard let last = answered[origin], last.realm == offer.realm, last.credentials == found
        else { return false }
        guard case .digest(let challenge) = offer else { return true }
        if challenge.isStale { return false }
        // Servers of old say nothing of it when a nonce ends that they have taken before.
        guard case .digest(let session) = last.method else { return true }
        return session.nonceCount < 2 || session.challenge.nonce == challenge.nonce
    }

    private mutating func answer(
        _ offer: Offer, _ found: UserCredentials, _ request: Request,
        using generator: inout some RandomNumberGenerator
    ) throws(AuthenticationError) -> String {
        let value: String
        let method: Answered.Method
        switch offer {
        case .basic(let realm):
            value = try found.basic()
            method = .basic(paths(of: request, realm: realm))
        case .digest(let challenge):
            var session = DigestSession(challenge, using: &generator)
            value = try session.authorization(
                method: request.method, target: request.target, credentials: found,
                content: request.content)
            method = .digest(session)
        }
        answered[request.origin] = Answered(
            realm: offer.realm, credentials: found, method: method, order: nextOrder)
        nextOrder += 1
        if answered.count > Self.maximumSpaces {
            // The oldest answer goes; its origin asks again.
            let oldest = answered.min { $0.value.order < $1.value.order }
            if let oldest { answered[oldest.key] = nil }
        }
        return value
    }

    /// The paths below which Basic credentials of a realm are valid: those of before, and that of
    /// this request up to its last slash.
    private func paths(of request: Request, realm: String) -> [String] {
        let path = Self.path(of: request.target)
        let slash = path.lastIndex(of: "/")
        let new = slash.map { String(path[...$0]) } ?? "/"
        guard let last = answered[request.origin], last.realm == realm,
            case .basic(let paths) = last.method
        else { return [new] }
        return [new] + paths.filter { !$0.hasPrefix(new) }.prefix(15)
    }

    private static func covers(_ challenge: DigestChallenge, _ request: Request) -> Bool {
        guard !challenge.domain.isEmpty, !request.origin.isProxy else { return true }
        let origin = request.origin
        let hosts = [
            "\(origin.scheme)://\(origin.host)", "\(origin.scheme)://\(origin.host):\(origin.port)",
        ]
        return challenge.domain.contains { uri in
            if uri.hasPrefix("/") { return request.target.hasPrefix(uri) }
            return hosts.contains { host in
                guard uri.hasPrefix(host) else { return false }
                let path = uri.dropFirst(host.count)
                return path.isEmpty || path.hasPrefix("/") && request.target.hasPrefix(path)
            }
        }
    }

    /// The path of a request's target, which may be an absolute URI.
    private static func path(of target: String) -> Substring {
        let bare = target.prefix { $0 != "?" }
        guard !bare.hasPrefix("/") else { return bare }
        // Scheme, nothing, authority, path.
        let parts = bare.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false)
        return parts.count == 4 ? "/\(parts[3])" : "/"
    }
}
