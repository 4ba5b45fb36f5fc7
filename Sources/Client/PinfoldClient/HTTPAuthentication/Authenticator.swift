/// Answers challenges, and knows which requests can be authenticated preemptively, before the
/// server sends a challenge.
///
/// It is a value that makes no requests and asks nobody for credentials. Of the schemes that a
/// server offers, it uses the strongest one for which there are credentials: Digest with the
/// longest hash, then Basic.
package struct Authenticator: Sendable {
    /// The maximum number of origins that are remembered, and of protection spaces with
    /// credentials.
    package static let maximumSpaces = 1024

    /// A supported authentication scheme.
    package enum Scheme: Hashable, Sendable, CaseIterable {
        /// Basic (RFC 7617) and Digest (RFC 7616).
        case basic, digest
    }

    /// What a challenge offers: a scheme that accepts the credentials of a protection space.
    package struct Offer: Hashable, Sendable {
        /// The protection space whose credentials are requested.
        package var space: Space
        /// The scheme by which they are sent.
        package var scheme: Scheme

        /// Creates an offer.
        package init(space: Space, scheme: Scheme) {
            (self.space, self.scheme) = (space, scheme)
        }
    }

    /// The value of an Authorization or Proxy-Authorization field, and what it was made from. If
    /// the request is rejected, pass the answer to ``decide(_:for:sent:excluding:using:)``.
    package struct Answer: Hashable, Sendable {
        /// The bytes of the field value. They need not be valid UTF-8, because a nonce is sent back
        /// unchanged.
        package private(set) var bytes: [UInt8]
        /// The field value as text.
        package var value: String { String(decoding: bytes, as: UTF8.self) }
        /// The protection space that the credentials belong to.
        package let space: Space
        /// The credentials that the field contains (Basic) or proves knowledge of (Digest).
        package let credentials: UserCredentials
        /// The server's nonce, or `nil` for Basic.
        var nonce: String?
        /// Whether the answer was sent preemptively, not in response to a challenge of this
        /// request.
        var isPreemptive = false
        /// How many consecutive answers before this one were rejected because their nonce was
        /// stale.
        var renewals = 0
        /// What a Digest answer to a challenge was made with, or `nil` for any other one.
        var session: DigestSession?

        /// Returns the answer to the same challenge for the request as it is now, or `nil` if that
        /// goes to another origin. It takes the place of this one, which must not have been sent.
        package func remade(for request: Request) throws(AuthenticationError) -> Answer? {
            guard request.origin == space.origin else { return nil }
            guard var session else { return self }
            var remade = self
            remade.bytes = try session.authorizationBytes(
                method: request.method, target: request.target, credentials: credentials,
                content: request.content)
            return remade
        }
    }

    /// What to do about a response with challenges.
    package enum Decision: Hashable, Sendable {
        /// Repeat the request with this answer.
        case answer(Answer)
        /// There are no credentials for any of these offers, which are listed with the strongest
        /// first. Once credentials have been set, the same challenges can be decided again.
        case needsCredentials([Offer])
        /// These credentials were sent and are wrong. They have been removed.
        case rejected(Offer, UserCredentials)
        /// The credentials were sent with ``Authenticator/maximumRenewals`` new nonces and one
        /// more, and the server called each of them stale.
        case staysStale(Offer)
        /// All schemes are unknown, not allowed, or excluded.
        case notSupported([String])
    }

    /// The request to be authenticated.
    package struct Request: Hashable, Sendable {
        /// The recipient: the proxy for Proxy-Authorization, otherwise the origin server.
        package var origin: Origin
        /// The method as it appears in the request line.
        package var method: String
        /// The target as it appears in the request line.
        package var target: String
        /// The content, or `nil` if it is not in memory as a whole.
        package var content: [UInt8]?

        /// Creates a request. By default it has no content.
        package init(
            origin: Origin, method: String, target: String, content: [UInt8]? = []
        ) {
            (self.origin, self.method) = (origin, method)
            (self.target, self.content) = (target, content)
        }
    }

    /// The most recent answer to an origin.
    private struct Answered: Sendable {
        var realm: String
        var credentials: UserCredentials
        var method: Method
        /// Increases with each answer.
        var order: UInt64

        enum Method: Sendable {
            /// The path prefixes for which it is sent preemptively.
            case basic([String])
            case digest(DigestSession)
        }
    }

    /// The maximum number of consecutive new nonces with which one request is repeated. RFC 7616,
    /// section 3.3, expects one; without a limit, a server that calls every nonce stale would be
    /// asked forever.
    package static let maximumRenewals = 2

    /// All supported schemes.
    package static let everyScheme = Set(Scheme.allCases)

    /// The schemes that may be used. Without Basic, no password is sent in readable form.
    package var allowedSchemes: Set<Scheme>
    private var credentials: [Space: UserCredentials] = [:]
    private var answered: [Origin: Answered] = [:]
    private var nextOrder: UInt64 = 0

    /// Creates an authenticator without credentials.
    package init(allowedSchemes: Set<Scheme> = everyScheme) {
        self.allowedSchemes = allowedSchemes
    }

    /// Sets the credentials of a protection space, or removes them if they are `nil`. Credentials
    /// for a new space are ignored if there are already ``maximumSpaces``.
    package mutating func set(_ credentials: UserCredentials?, for space: Space) {
        guard self.credentials.count < Self.maximumSpaces || self.credentials[space] != nil else {
            return
        }
        self.credentials[space] = credentials
        if answered[space.origin]?.realm == space.realm { answered[space.origin] = nil }
    }

    /// Returns the credentials of a protection space, or `nil` if it has none.
    package func credentials(for space: Space) -> UserCredentials? { credentials[space] }

    /// Whether there are credentials for any realm of an origin.
    package func hasCredentials(for origin: Origin) -> Bool {
        credentials.keys.contains { $0.origin == origin }
    }

    /// Whether any request may be authenticated preemptively. If not, ``authorization(for:)``
    /// returns `nil` for every request.
    package var authenticatesPreemptively: Bool { !answered.isEmpty }

    /// Returns the field value to send with a request preemptively, if the request is in the scope
    /// of the most recent answer to its origin (RFC 7617, section 2.2; RFC 7616, section 3.3).
    /// Returns `nil` if the request has to wait for a challenge.
    package mutating func authorization(
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
                credentials: last.credentials, isPreemptive: true)
        case .digest(var session):
            guard Self.covers(session.challenge, request) else { return nil }
            let bytes = try session.authorizationBytes(
                method: request.method, target: request.target, credentials: last.credentials,
                content: request.content)
            last.method = .digest(session)
            answered[request.origin] = last
            return Answer(
                bytes: bytes, space: space, credentials: last.credentials,
                nonce: session.challenge.nonce, isPreemptive: true)
        }
    }

    /// Decides what to do about the challenges of a 401 or 407 response.
    ///
    /// - Parameters:
    ///   - sent: The answer from this authenticator that the challenged request carried, or `nil`
    ///     if it carried none. Credentials are considered rejected only if they were the ones sent:
    ///     others may have been set while the request was in progress.
    ///   - excluded: Offers that must not be used.
    ///   - sends: Whether the caller sends the answer's value as it is. Pass `false` if the value
    ///     that is sent will come from ``authorization(for:)``, which begins with the nonce's first
    ///     count.
    ///   - generator: The source of randomness for the client's nonce.
    package mutating func decide(
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

    /// Processes the parameters of an Authentication-Info or Proxy-Authentication-Info field.
    package mutating func take(info: [String: String], from origin: Origin) {
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
        /// `nil` for Basic.
        var digest: DigestChallenge?

        /// Larger values protect the password better.
        var strength: Int { digest?.algorithm.strength ?? -1 }

        /// Returns `nil` if the scheme is not supported or the challenge is incomplete.
        init?(_ challenge: HTTPChallenge, from origin: Origin) {
            digest = DigestChallenge(challenge)
            guard digest != nil || challenge.scheme == "basic" else { return nil }
            // Both schemes require a realm, but some servers omit it: it is then the empty one.
            offer = Offer(
                space: Space(origin: origin, realm: challenge.realm ?? ""),
                scheme: digest == nil ? .basic : .digest)
        }
    }

    /// What the rejected answer implies for the credentials.
    private enum Standing {
        /// Nothing, or only that this many consecutive nonces were stale.
        case untried(renewals: Int)
        case refused
        case stale
    }

    /// The supported challenges, the strongest first; equally strong ones keep their order.
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
        // A server cannot downgrade us from Digest to Basic.
        guard let challenge = known.digest else { return .refused }
        guard let nonce = sent.nonce else { return .untried(renewals: 0) }
        // Old servers do not say so when a nonce expires that they have accepted before.
        guard challenge.nonce != nonce, challenge.isStale || sent.isPreemptive else {
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
                space: space, credentials: found, nonce: challenge.nonce, session: unused)
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
            // The oldest answer is dropped; its origin will send a challenge again.
            let oldest = answered.min { $0.value.order < $1.value.order }
            if let oldest { answered[oldest.key] = nil }
        }
        return answer
    }

    /// The path prefixes for which Basic credentials of a realm are valid: the known ones, and the
    /// path of this request up to its last slash.
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
        // Scheme, an empty part, authority, path.
        let parts = bare.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false)
        return parts.count == 4 ? "/\(parts[3])" : "/"
    }
}
