import Clocks
import HTTPTypes
import Locking

/// The cookies of one or more sessions (`NSHTTPCookieStorage`), according to RFC 6265. Cookies set
/// by responses, including redirects and challenges, are sent with the requests they match.
///
/// Cookies are kept in memory. A store created with a file reads it on creation, and writes it when
/// ``save()`` is called.
public final class CookieStore: Sendable {
    /// Which cookies are accepted from responses (`NSHTTPCookieAcceptPolicy`). Cookies in the store
    /// are sent in any case.
    public enum Policy: String, Sendable, Hashable, CaseIterable {
        /// All cookies that RFC 6265 allows.
        case always
        /// No cookies.
        case never
        /// Only cookies from the site (``CookieRequest/site``) of the task's first request.
        /// If a redirect leads to another site, that site cannot set cookies.
        case onlyFromMainDocumentDomain
    }

    private struct State {
        var jar: CookieJar
        var policy: Policy
    }

    private let state: Locked<State>
    /// Held while the file is written, so that of two calls the later one's cookies remain.
    private let writing = Locked(())
    /// The store's file, or `nil` if the store is only in memory.
    public let path: String?
    /// Whether ``save()`` also writes session cookies.
    public let keepsSessionCookies: Bool

    /// Creates an empty store in memory.
    public init(policy: Policy = .always, limits: CookieJar.Limits = CookieJar.Limits()) {
        path = nil
        keepsSessionCookies = false
        state = Locked(State(jar: CookieJar(limits: limits), policy: policy))
    }

    /// Creates a store with the cookies in a file, in curl's format (`CookieFile`). If
    /// the file does not exist, the store is empty and ``save()`` creates the file.
    ///
    /// - Parameters:
    ///   - path: The file's path. The file is read before this returns.
    ///   - keepsSessionCookies: Whether cookies without an expiry time are written to the file,
    ///     too, and so outlast the session, as with curl's `--cookie-jar`. By default they are not,
    ///     as in browsers and `NSHTTPCookieStorage`.
    /// - Throws: ``ClientError`` with ``ClientError/Reason/contentFailed`` if the file cannot be
    ///   read or is not a cookie file; ``ClientError/underlying`` gives the line.
    public init(
        file path: String, keepsSessionCookies: Bool = false, policy: Policy = .always,
        limits: CookieJar.Limits = CookieJar.Limits()
    ) throws(ClientError) {
        self.path = path
        self.keepsSessionCookies = keepsSessionCookies
        do throws(CookieFileError) {
            let jar = try CookieFile.read(path, limits: limits, at: Clock.wallSeconds())
            state = Locked(State(jar: jar ?? CookieJar(limits: limits), policy: policy))
        } catch {
            throw ClientError(.contentFailed, "\(error)", underlying: error)
        }
    }

    /// Replaces the file's content with the cookies that outlast the session, or with all cookies
    /// (``keepsSessionCookies``). The file is complete at any time, even after a power failure.
    /// Does nothing for a store in memory.
    ///
    /// This blocks until the file is written. Do not call it on a thread that must not wait for the
    /// disk.
    ///
    /// - Throws: ``ClientError`` with ``ClientError/Reason/contentFailed``.
    public func save() throws(ClientError) {
        guard let path else { return }
        do throws(CookieFileError) {
            try writing.withLock { _ throws(CookieFileError) in
                let jar = state.withLock { $0.jar }
                try CookieFile.write(
                    jar, to: path, at: Clock.wallSeconds(),
                    includesSession: keepsSessionCookies)
            }
        } catch {
            throw ClientError(.contentFailed, "\(error)", underlying: error)
        }
    }

    /// Which cookies are accepted from responses from now on.
    public var policy: Policy {
        get { state.withLock { $0.policy } }
        set { state.withLock { $0.policy = newValue } }
    }

    /// All cookies in the order of their creation.
    public var cookies: [Cookie] {
        state.withLock { state in
            state.jar.removeExpired(at: Clock.wallSeconds())
            return state.jar.cookies
        }
    }

    /// Returns the cookies for a request to a URL, in the order in which they are sent; none if it
    /// is not an http or https URL.
    public func cookies(for url: String) -> [Cookie] {
        guard let request = try? HTTPRequest(.get, url), let question = CookieRequest(request)
        else { return [] }
        return state.withLock { $0.jar.cookies(for: question, at: Clock.wallSeconds()) }
    }

    /// Adds a cookie, replacing one with the same name, domain and path.
    public func set(_ cookie: Cookie) {
        state.withLock { $0.jar.insert(cookie, at: Clock.wallSeconds()) }
    }

    /// Processes a Set-Cookie field as if it were in a response from a URL.
    @discardableResult
    public func set(field: String, from url: String) -> CookieJar.Outcome? {
        guard let request = try? HTTPRequest(.get, url), let source = CookieRequest(request)
        else { return nil }
        return state.withLock {
            $0.jar.store(setCookie: field, from: source, at: Clock.wallSeconds())
        }
    }

    /// Removes all cookies that match a predicate.
    public func removeAll(where isRemoved: @Sendable (Cookie) -> Bool = { _ in true }) {
        state.withLock { $0.jar.removeAll(where: isRemoved) }
    }

    // MARK: Used by tasks

    /// Returns the Cookie field of a request, or `nil` if it has none.
    func field(for request: HTTPRequest) -> [UInt8]? {
        guard state.withLock({ $0.jar.count > 0 }), let request = CookieRequest(request) else {
            return nil
        }
        return state.withLock { $0.jar.fieldBytes(for: request, at: Clock.wallSeconds()) }
    }

    /// Processes the cookies set by a response.
    ///
    /// - Parameter first: The task's first request.
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
                state.jar.store(setCookie: field, from: request, at: Clock.wallSeconds())
            }
        }
    }
}

extension CookieRequest {
    /// Returns `nil` if the request has no valid URL.
    init?(_ request: HTTPRequest) {
        guard let origin = request.origin else { return nil }
        self.init(
            host: origin.host, path: request.path ?? "/", isSecure: origin.scheme == "https")
    }
}
