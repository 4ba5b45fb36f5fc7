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

    /// What a challenge offers: a scheme, by which credentials of a realm are accepted.
    public struct Offer: Hashable, Sendable {
        /// Whose credentials are asked for.
        public var space: Space
        /// How they are sent.
        public var scheme: Scheme

        /// An offer put together by hand.
        public init(space: Space, scheme: Scheme) {
            (self.space, self.scheme) = (space, scheme)
        }
    }

    /// A field value (Authorization or Proxy-Authorization), and what it was made of: a request
    /// that is refused brings it back to ``decide(_:for:sent:excluding:using:)``.
    public struct Answer: Hashable, Sendable {
        /// As the field has it, which need not be UTF-8: a nonce is sent back as it came.
        public let bytes: [UInt8]
        /// The same as text.
        public var value: String { String(decoding: bytes, as: UTF8.self) }
        /// Whose credentials it says.
        public let space: Space
        /// What it says of them, or proves.
        public let credentials: UserCredentials
        /// The server's nonce; nil for Basic.
        var nonce: String?
        /// It was not the answer to a challenge of this request.
        var isUnasked = false
        /// Answers before it that were refused for the age of their nonce, one after the other.
        var renewals = 0
    }

    /// What to do about a response with challenges.
    public enum Decision: Hashable, Sendable {
        /// Make the request again with this.
        case answer(Answer)
        /// There are no credentials for any of these, the strongest first. Once they are set, the
        /// same challenges can be decided again.
        case needsCredentials([Offer])
        /// These credentials were sent, and are wrong: they are forgotten.
        case rejected(Offer, UserCredentials)
        /// The credentials were sent with ``Authenticator/maximumRenewals`` new nonces and one
        /// more, and the server called each one too old.
        case staysStale(Offer)
        /// Only schemes that are not known, not allowed, or excluded.
        case notSupported([String])
    }

    /// What is asked about a request.
    public struct Request: Hashable, Sendable {
        /// Whom it is made to: the proxy for a Proxy-Authorization.
        public var origin: Origin
        /// As the request line has it.
        public var method: String
        /// As the request line has it.
        public var target: String
        /// Nil: it is not there as a whole.
        public var content: [UInt8]?

        /// A request, without content unless that is named.
        public init(
            origin: Origin, method: String, target: String, content: [UInt8]? = []
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

    /// New nonces in a row with which one request is made again. RFC 7616, section 3.3, expects
    /// one; a server that calls every nonce stale would otherwise be asked for ever.
    public static let maximumRenewals = 2

    /// All that are known here.
    public static let everyScheme = Set(Scheme.allCases)

    /// Without Basic, no password goes over a connection in a form that can be read.
    public var allowedSchemes: Set<Scheme>
    private var credentials: [Space: UserCredentials] = [:]
    private var answered: [Origin: Answered] = [:]
    private var nextOrder: UInt64 = 0

    /// Without any credentials.
    public init(allowedSchemes: Set<Scheme> = everyScheme) {
        self.allowedSchemes = allowedSchemes
    }

    /// Sets the credentials of a protection space; nil removes them. Beyond ``maximumSpaces`` new
    /// ones are not taken.
    public mutating func set(_ credentials: UserCredentials?, for space: Space) {
        guard self.credentials.count < Self.maximumSpaces || self.credentials[space] != nil else {
            return
        }
        self.credentials[space] = credentials
        if answered[space.origin]?.realm == space.realm { answered[space.origin] = nil }
    }

    /// The credentials of a protection space; nil: it has none.
    public func credentials(for space: Space) -> UserCredentials? { credentials[space] }

    /// Whether an origin has credentials, of whatever realm.
    public func hasCredentials(for origin: Origin) -> Bool {
        credentials.keys.contains { $0.origin == origin }
    }

    /// Whether some request takes credentials along unasked: without that,
    /// ``authorization(for:)`` is nil for each.
    public var answersUnasked: Bool { !answered.isEmpty }

    /// What a request takes along unasked: to what the last answer was for (RFC 7617, section 2.2;
    /// RFC 7616, section 3.3). Nil: it waits for a challenge.
    public mutating func authorization(
        for request: Request
    ) throws(AuthenticationError) -> Answer? {
        guard var last = answered[request.origin] else { return nil }
        let space = Space(origin: request.origin, realm: last.realm)
        switch last.method {
        case .basic(let paths):
            let path = Self.path(of: request.target)
            guard request.origin.isProxy || paths.contains(where: { path.hasPrefix($0) }) else {
                return nil
            }
            return Answer(
                bytes: Array(try last.credentials.basic().utf8), space: space,
                credentials: last.credentials, isUnasked: true)
        case .digest(var session):
            guard Self.covers(session.challenge, request) else { return nil }
            let bytes = try session.authorizationBytes(
                method: request.method, target: request.target, credentials: last.credentials,
                content: request.content)
            last.method = .digest(session)
            answered[request.origin] = last
            return Answer(
                bytes: bytes, space: space, credentials: last.credentials,
                nonce: session.challenge.nonce, isUnasked: true)
        }
    }

    /// Decides about the challenges of a 401 or 407.
    ///
    /// - Parameters:
    ///   - sent: what the request that is challenged took along of this authenticator; nil:
    ///     nothing. Credentials count as refused only if it was them that were sent: others may
    ///     have been set while the request was under way.
    ///   - excluded: what is not to be made use of.
    ///   - sends: false: the answer's value is not sent as it is. What is sent is asked of
    ///     ``authorization(for:)``, which begins with the nonce's first count.
    ///   - generator: for the client's nonce.
    public mutating func decide(
        _ challenges: [HTTPChallenge], for request: Request, sent: Answer?,
        excluding excluded: Set<Offer> = [], sends: Bool = true,
        using generator: inout some RandomNumberGenerator
    ) throws(AuthenticationError) -> Decision {
        let known = Self.known(challenges, from: request.origin).filter {
            allowedSchemes.contains($0.offer.scheme) && !excluded.contains($0.offer)
        }
        guard !known.isEmpty else { return .notSupported(challenges.map(\.scheme)) }
        for known in known {
            let offer = known.offer
            guard let found = credentials[offer.space] else { continue }
            switch Self.standing(of: found, for: known, after: sent) {
            case .untried(let renewals):
                var answer = try answer(known, found, request, sends: sends, using: &generator)
                answer.renewals = renewals
                return .answer(answer)
            case .refused:
                credentials[offer.space] = nil
                if answered[request.origin]?.credentials == found {
                    answered[request.origin] = nil
                }
                return .rejected(offer, found)
            case .stale: return .staysStale(offer)
            }
        }
        return .needsCredentials(known.map(\.offer))
    }

    /// Takes the parameters of an Authentication-Info or Proxy-Authentication-Info field.
    public mutating func take(info: [String: String], from origin: Origin) {
        guard var last = answered[origin], case .digest(var session) = last.method else { return }
        session.take(info: info)
        last.method = .digest(session)
        answered[origin] = last
    }
}

// MARK: - Offers and answers

extension Authenticator {
    /// A challenge that can be answered.
    private struct KnownChallenge {
        var offer: Offer
        /// Nil for Basic.
        var digest: DigestChallenge?

        /// The larger, the better it keeps the password.
        var strength: Int { digest?.algorithm.strength ?? -1 }

        /// Nil: it is of another scheme, or incomplete.
        init?(_ challenge: HTTPChallenge, from origin: Origin) {
            digest = DigestChallenge(challenge)
            guard digest != nil || challenge.scheme == "basic" else { return nil }
            // Both schemes ask for a realm, and servers leave it out: it is the empty one then.
            offer = Offer(
                space: Space(origin: origin, realm: challenge.realm ?? ""),
                scheme: digest == nil ? .basic : .digest)
        }
    }

    /// What the answer that was refused says of credentials.
    private enum Standing {
        /// Nothing, or that so many nonces in a row were too old.
        case untried(renewals: Int)
        case refused
        case stale
    }

    /// What is known of the challenges, the strongest first, and of two the one that came first.
    private static func known(
        _ challenges: [HTTPChallenge], from origin: Origin
    ) -> [KnownChallenge] {
        challenges.compactMap { KnownChallenge($0, from: origin) }.enumerated().sorted {
            ($1.element.strength, $0.offset) < ($0.element.strength, $1.offset)
        }.map(\.element)
    }

    private static func standing(
        of found: UserCredentials, for known: KnownChallenge, after sent: Answer?
    ) -> Standing {
        guard let sent, sent.space == known.offer.space, sent.credentials == found else {
            return .untried(renewals: 0)
        }
        // Nobody makes us go from Digest to Basic.
        guard let challenge = known.digest else { return .refused }
        guard let nonce = sent.nonce else { return .untried(renewals: 0) }
        // Servers of old say nothing of it when a nonce ends that they have taken before.
        guard challenge.nonce != nonce, challenge.isStale || sent.isUnasked else {
            return .refused
        }
        return sent.renewals < maximumRenewals
            ? .untried(renewals: sent.renewals + 1) : .stale
    }

    private mutating func answer(
        _ known: KnownChallenge, _ found: UserCredentials, _ request: Request, sends: Bool,
        using generator: inout some RandomNumberGenerator
    ) throws(AuthenticationError) -> Answer {
        let space = known.offer.space
        let answer: Answer
        let method: Answered.Method
        if let challenge = known.digest {
            let unused = DigestSession(challenge, using: &generator)
            var session = unused
            answer = Answer(
                bytes: try session.authorizationBytes(
                    method: request.method, target: request.target, credentials: found,
                    content: request.content),
                space: space, credentials: found, nonce: challenge.nonce)
            method = .digest(sends ? session : unused)
        } else {
            answer = Answer(
                bytes: Array(try found.basic().utf8), space: space, credentials: found)
            method = .basic(paths(of: request, realm: space.realm))
        }
        answered[request.origin] = Answered(
            realm: space.realm, credentials: found, method: method, order: nextOrder)
        nextOrder += 1
        if answered.count > Self.maximumSpaces {
            // The oldest answer goes; its origin asks again.
            let oldest = answered.min { $0.value.order < $1.value.order }
            if let oldest { answered[oldest.key] = nil }
        }
        return answer
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
