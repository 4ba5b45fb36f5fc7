import PinfoldClient

extension FuzzTarget {
    /// The first byte selects the request; after it each line is a Set-Cookie field of its
    /// response. No cookie is stored for another site, or longer than is allowed; what is sent back
    /// contains no control character; and a file keeps the cookies as they are.
    func checkCookies(_ bytes: [UInt8]) throws(FuzzCheckError) -> Bool {
        guard let selector = bytes.first else { return false }
        let hosts = ["www.example.com", "a.b.example.co.uk", "github.io", "127.0.0.1", "[::1]"]
        let request = CookieRequest(
            host: hosts[Int(selector & 7) % hosts.count], path: "/a/b;c?d",
            isSecure: selector & 8 != 0, isHTTP: selector & 16 == 0)
        let limits =
            selector & 32 == 0
            ? CookieJar.Limits()
            : CookieJar.Limits(
                cookiesPerSite: 3, cookies: 2, cookiesPerRequest: 2, bytesPerRequest: 30)
        let now: Int64 = 1_798_761_600
        var jar = CookieJar(limits: limits)
        var isStored = false
        for field in bytes.dropFirst().split(separator: 0x0A, omittingEmptySubsequences: false) {
            let outcome = jar.store(setCookie: Array(field), from: request, at: now)
            if case .refused = outcome { continue }
            isStored = true
            let count = jar.count
            guard jar.store(setCookie: Array(field), from: request, at: now) == outcome,
                jar.count == count, count <= limits.cookies
            else { throw FuzzCheckError("\(field) is another cookie the second time") }
        }
        for cookie in jar.cookies {
            guard Self.belongs(cookie, to: request), (cookie.expires ?? now) <= now + 400 * 86_400,
                cookie.nameBytes.count + cookie.valueBytes.count <= 4096,
                (cookie.nameBytes + cookie.valueBytes).allSatisfy(Self.isSendable),
                !cookie.isSecureOnly || request.isSecure, !cookie.isHTTPOnly || request.isHTTP
            else { throw FuzzCheckError("\(cookie) was stored") }
        }
        try checkFile(jar, at: now)
        if let field = jar.fieldBytes(for: request, at: now) {
            guard field.count <= limits.bytesPerRequest, field.allSatisfy(Self.isSendable) else {
                throw FuzzCheckError("\(field) is sent")
            }
        }
        return isStored
    }

    /// Whether a request may set a cookie: for its host, or for a domain above it that is one
    /// site's.
    private static func belongs(_ cookie: Cookie, to request: CookieRequest) -> Bool {
        guard !cookie.isHostOnly else { return cookie.domain == request.host }
        let site = CookieRequest(host: cookie.domain, isSecure: true).site
        return site == request.site && site.utf8.count <= cookie.domain.utf8.count
            && (request.host == cookie.domain || request.host.hasSuffix("." + cookie.domain))
    }

    private static func isSendable(_ byte: UInt8) -> Bool { byte >= 0x20 && byte != 0x7F }

    private func checkFile(_ jar: CookieJar, at now: Int64) throws(FuzzCheckError) {
        let bytes = CookieFile.bytes(of: jar, at: now, includesSession: true)
        let again: CookieJar
        do throws(CookieFileError) {
            again = try CookieFile.jar(bytes, path: "f", limits: jar.limits, at: now)
        } catch {
            throw FuzzCheckError("what was written cannot be read: \(error)")
        }
        // Attributes may have tabs, which no column of the file can have.
        let kept = jar.cookies.filter { !$0.path.utf8.contains(0x09) }
        guard again.cookies == kept else {
            throw FuzzCheckError("\(jar.cookies), then \(again.cookies)")
        }
    }

    // MARK: Challenges

    /// Each line is a WWW-Authenticate field of one response. The challenges are within the limits,
    /// and the same after they have been written; an answer to them has no control characters.
    func checkChallenges(_ bytes: [UInt8]) throws(FuzzCheckError) -> Bool {
        let fields = bytes.split(separator: 0x0A, omittingEmptySubsequences: false).map {
            Array($0)
        }
        if let text = String(validating: bytes, as: UTF8.self) {
            _ = try? HTTPChallenge.parse(info: text)
        }
        let challenges: [HTTPChallenge]
        do throws(ChallengeError) { challenges = try HTTPChallenge.parse(fields) } catch {
            if case .unexpected(let offset) = error, !(0...bytes.count).contains(offset) {
                throw FuzzCheckError("\(offset) is not in the fields")
            }
            return false
        }
        guard challenges.count <= HTTPChallenge.maximumChallenges,
            challenges.allSatisfy({
                $0.parameterBytes.count <= HTTPChallenge.maximumParameters
            })
        else { throw FuzzCheckError("\(challenges.count) challenges") }
        let written = challenges.map(Self.written)
        for fields in [written, [Array(written.joined(separator: ", ".utf8))]] {
            guard let again = try? HTTPChallenge.parse(fields), again == challenges else {
                throw FuzzCheckError("\(challenges) are something else when written")
            }
        }
        try checkAnswer(challenges)
        return true
    }

    private static func written(_ challenge: HTTPChallenge) -> [UInt8] {
        let scheme = Array(challenge.scheme.utf8)
        if let token = challenge.token68 { return scheme + " \(token)".utf8 }
        let parameters = challenge.parameterBytes.sorted { $0.key < $1.key }.map { name, value in
            let quoted = value.flatMap { byte -> [UInt8] in
                byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") ? [0x5C, byte] : [byte]
            }
            return Array("\(name)=\"".utf8) + quoted + [UInt8(ascii: "\"")]
        }
        guard !parameters.isEmpty else { return scheme }
        return scheme + [0x20] + Array(parameters.joined(separator: ", ".utf8))
    }

    private func checkAnswer(_ challenges: [HTTPChallenge]) throws(FuzzCheckError) {
        let origin = Authenticator.Origin(scheme: "https", host: "a.test", port: 443)
        let request = Authenticator.Request(origin: origin, method: "GET", target: "/a?b")
        var authenticator = Authenticator()
        for challenge in challenges {
            authenticator.set(
                UserCredentials(user: "us\"er", password: "p"),
                for: Authenticator.Space(origin: origin, realm: challenge.realm ?? ""))
        }
        var generator = Counter()
        guard
            case .answer(let answer)? = try? authenticator.decide(
                challenges, for: request, sent: nil, using: &generator)
        else { return }
        guard answer.bytes.allSatisfy({ $0 == 0x09 || Self.isSendable($0) }) else {
            throw FuzzCheckError("\(answer.bytes) is sent")
        }
        // What is sent as the answer is itself a list of parameters.
        if answer.value.hasPrefix("Digest ") {
            guard let again = try? HTTPChallenge.parse([answer.bytes]), again.count == 1 else {
                throw FuzzCheckError("\(answer.bytes) is more than one answer")
            }
        }
        let next = try? authenticator.authorization(for: request)
        guard next?.bytes.allSatisfy({ $0 == 0x09 || Self.isSendable($0) }) ?? true else {
            throw FuzzCheckError("\(next?.bytes ?? []) is sent")
        }
    }

    /// No nonce here has to be unpredictable.
    private struct Counter: RandomNumberGenerator {
        private var state: UInt64 = 0

        mutating func next() -> UInt64 {
            state += 1
            return state
        }
    }
}
