import Clocks
public import Cookies
import HTTPTypes
import Locking

/// The cookies of one session or several (`NSHTTPCookieStorage`), by RFC 6265: those that responses
/// set, redirects and challenges included, are sent with the requests that they are for.
///
/// They are in memory. A store that was made with a file reads it then, and writes it when
/// ``save()`` is called.
public final class CookieStore: Sendable {
    /// Which cookies of responses are taken (`NSHTTPCookieAcceptPolicy`). Those that are in the
    /// store are sent in any case.
    public enum Policy: String, Sendable, Hashable, CaseIterable {
        /// All that RFC 6265 allows.
        case always
        /// None.
        case never
        /// Those of the site (``CookieRequest/site``) that the task's first request was
        /// for: where a redirect leads to another one, that one sets none.
        case onlyFromMainDocumentDomain
    }

    private struct State {
        var jar: CookieJar
        var policy: Policy
    }

    private let state: Locked<State>
    /// What the file is written under, so that of two calls the later one's cookies stay.
    private let writing = Locked(())
    /// The file that the store was made with; nil: it is in memory alone.
    public let path: String?
    /// Whether ``save()`` writes cookies that go with the session, too.
    public let keepsSessionCookies: Bool

    /// An empty store, in memory.
    public init(policy: Policy = .always, limits: CookieJar.Limits = CookieJar.Limits()) {
        path = nil
        keepsSessionCookies = false
        state = Locked(State(jar: CookieJar(limits: limits), policy: policy))
    }

    /// A store with the cookies of a file, in the format of curl (``CookieFile``). Where
    /// there is none it is empty, and ``save()`` makes it.
    ///
    /// - Parameters:
    ///   - path: Of the file, which is read before this returns.
    ///   - keepsSessionCookies: Cookies without an end are written to the file, too, and so outlast
    ///     the session, as with curl's `--cookie-jar`. By default they do not, as browsers and
    ///     `NSHTTPCookieStorage` have it.
    /// - Throws: ``ClientError`` with ``ClientError/Reason/contentFailed`` where the file cannot be
    ///   read, or is something else; ``ClientError/underlying`` says the line.
    public init(
        file path: String, keepsSessionCookies: Bool = false, policy: Policy = .always,
        limits: CookieJar.Limits = CookieJar.Limits()
    ) throws(ClientError) {
        self.path = path
        self.keepsSessionCookies = keepsSessionCookies
        do throws(CookieFileError) {
            let jar = try CookieFile.read(path, limits: limits, at: Clock.coarseWallSeconds())
            state = Locked(State(jar: jar ?? CookieJar(limits: limits), policy: policy))
        } catch {
            throw ClientError(.contentFailed, "\(error)", underlying: error)
        }
    }

    /// Replaces the file by the cookies that outlast the session, or all of them
    /// (``keepsSessionCookies``); it is whole at any time, also after a loss of power. Does nothing
    /// for a store in memory.
    ///
    /// Waits for the disk: not to be called where that must not be.
    ///
    /// - Throws: ``ClientError`` with ``ClientError/Reason/contentFailed``.
    public func save() throws(ClientError) {
        guard let path else { return }
        do throws(CookieFileError) {
            try writing.withLock { _ throws(CookieFileError) in
                let jar = state.withLock { $0.jar }
                try CookieFile.write(
                    jar, to: path, at: Clock.coarseWallSeconds(),
                    includesSession: keepsSessionCookies)
            }
        } catch {
            throw ClientError(.contentFailed, "\(error)", underlying: error)
        }
    }

    /// Which cookies of responses are taken from now on.
    public var policy: Policy {
        get { state.withLock { $0.policy } }
        set { state.withLock { $0.policy = newValue } }
    }

    /// All cookies, in the order of their making.
    public var cookies: [Cookie] {
        state.withLock { state in
            state.jar.removeExpired(at: Clock.coarseWallSeconds())
            return state.jar.cookies
        }
    }

    /// The cookies that a request for a URL takes along, in the order in which it names them; none
    /// for what is no http or https URL.
    public func cookies(for url: String) -> [Cookie] {
        guard let request = try? HTTPRequest(.get, url), let question = CookieRequest(request)
        else { return [] }
        return state.withLock { $0.jar.cookies(for: question, at: Clock.coarseWallSeconds()) }
    }

    /// Puts a cookie in, in place of one with its name, domain and path.
    public func set(_ cookie: Cookie) {
        state.withLock { $0.jar.insert(cookie, at: Clock.coarseWallSeconds()) }
    }

    /// Takes a Set-Cookie field as of a response to a URL.
    @discardableResult
    public func set(field: String, from url: String) -> CookieJar.Outcome? {
        guard let request = try? HTTPRequest(.get, url), let source = CookieRequest(request)
        else { return nil }
        return state.withLock {
            $0.jar.store(setCookie: field, from: source, at: Clock.coarseWallSeconds())
        }
    }

    /// Removes the cookies for which this is so.
    public func removeAll(where isRemoved: @Sendable (Cookie) -> Bool = { _ in true }) {
        state.withLock { $0.jar.removeAll(where: isRemoved) }
    }

    // MARK: For tasks

    /// The Cookie field of a request; nil: it has none.
    func field(for request: HTTPRequest) -> [UInt8]? {
        guard state.withLock({ $0.jar.count > 0 }), let request = CookieRequest(request) else {
            return nil
        }
        return state.withLock { $0.jar.fieldBytes(for: request, at: Clock.coarseWallSeconds()) }
    }

    /// Takes what a response sets.
    ///
    /// - Parameter first: What the task asked for first.
    func take(_ fields: [[UInt8]], from request: HTTPRequest, ofTaskFor first: HTTPRequest) {
        guard !fields.isEmpty, let request = CookieRequest(request) else { return }
        state.withLock { state in
            switch state.policy {
            case .never: return
            case .onlyFromMainDocumentDomain
            where request.site != CookieRequest(first)?.site: return
            case .always, .onlyFromMainDocumentDomain: break
            }
            for field in fields {
                state.jar.store(setCookie: field, from: request, at: Clock.coarseWallSeconds())
            }
        }
    }
}

extension CookieRequest {
    /// Nil for a request that is for no URL.
    init?(_ request: HTTPRequest) {
        guard let origin = request.origin else { return nil }
        self.init(
            host: origin.host, path: request.path ?? "/", isSecure: origin.scheme == "https")
    }
}
