import Clocks
public import HTTPTypes
import Locking

/// A credential of an ``AuthenticationInterceptor``, for example an access token and the token with
/// which it is refreshed.
public protocol AuthenticationCredential: Sendable {
    /// Whether the credential is refreshed before it is used.
    ///
    /// - Parameter now: The current time in seconds since 1970.
    func requiresRefresh(at now: Int64) -> Bool

    /// Whether the credential is of no use any more. One that only requires a refresh is used when
    /// there were too many (``RefreshWindow``). By default, it is if it requires a refresh.
    ///
    /// - Parameter now: The current time in seconds since 1970.
    func isExpired(at now: Int64) -> Bool
}

extension AuthenticationCredential {
    /// It is refreshed only after a server has refused it.
    public func requiresRefresh(at now: Int64) -> Bool { false }

    /// It is as soon as it requires a refresh.
    public func isExpired(at now: Int64) -> Bool { requiresRefresh(at: now) }
}

/// Applies and refreshes the credentials of an ``AuthenticationInterceptor``.
public protocol RequestAuthenticator<Credential>: Sendable {
    /// The type of the credentials.
    associatedtype Credential: AuthenticationCredential

    /// Adds a credential to a request.
    func apply(_ credential: Credential, to request: inout HTTPRequest)

    /// Returns a new credential.
    ///
    /// It is called once, however many requests wait for it, and not cancelled with them: a server
    /// may have replaced the old credential already. A request waits at most until it is cancelled
    /// or its ``SessionConfiguration/resourceTimeout`` is over, but the refresh goes on, and should
    /// have a time limit of its own.
    ///
    /// What it sends is not intercepted by the interceptor that has called it, so that it may
    /// belong to the same session; other interceptors do intercept it. This holds for its task and
    /// for tasks that it starts, even after it has returned. It does not hold for detached tasks
    /// and other threads: requests from there may wait for the refresh, which must not wait for
    /// them. Nor must the refreshes of two interceptors each need a new credential of the other.
    ///
    /// - Parameter credential: The old credential, or `nil` if there is none yet.
    func refresh(_ credential: Credential?) async throws -> Credential

    /// Whether a response means that the credential of its request is not valid. By default, its
    /// status is 401.
    func isAuthenticationFailure(_ response: HTTPResponse, of request: HTTPRequest) -> Bool

    /// Whether a request carries this credential. If it does not, the credential was replaced
    /// since, and the request is sent again with the new one. By default, it does if applying the
    /// credential does not change it.
    func isRequest(_ request: HTTPRequest, authenticatedWith credential: Credential) -> Bool
}

extension RequestAuthenticator {
    /// Whether the status is 401.
    public func isAuthenticationFailure(
        _ response: HTTPResponse, of request: HTTPRequest
    ) -> Bool { response.status.code == 401 }

    /// Whether applying the credential does not change the request.
    public func isRequest(
        _ request: HTTPRequest, authenticatedWith credential: Credential
    ) -> Bool {
        var applied = request
        apply(credential, to: &applied)
        return applied == request
    }
}

/// Why an ``AuthenticationInterceptor`` has failed a request. It is the ``ClientError/underlying``
/// error.
public enum AuthenticationInterceptorError: Error, Sendable, Hashable, CustomStringConvertible {
    /// There were as many refreshes as its ``RefreshWindow`` allows.
    case excessiveRefresh(RefreshWindow)
    /// The credential was removed while it was being refreshed.
    case missingCredential

    public var description: String {
        switch self {
        case .excessiveRefresh(let window):
            "the credential was refreshed \(window.maximumAttempts) times within "
                + "\(window.interval), which is the maximum"
        case .missingCredential: "there is no credential"
        }
    }
}

/// The interceptors whose credentials the current task refreshes: they do not intercept what it
/// sends. There are several if a refresh sends requests for which another one is needed.
private enum RefreshScope {
    @TaskLocal static var interceptors: Set<InterceptorIdentity> = []
}

/// Adds a credential to the requests to one service, and refreshes it: once for all requests that
/// need it at the same time.
///
///     configuration.interceptor = try AuthenticationInterceptor(
///         BearerAuthenticator { old in try await signIn(with: old) },
///         credential: BearerCredential(token: token), for: ["https://api.example.com"])
///
/// A request whose credential is refused (401) is sent again with the new one, at most
/// ``maximumRetries`` times. The credential is only ever sent to the given origins, and not to
/// another one to which a redirect leads.
public final class AuthenticationInterceptor<Authenticator: RequestAuthenticator>:
    RequestInterceptor
{
    /// The type of the credential.
    public typealias Credential = Authenticator.Credential
    private typealias Refreshed = Result<Credential, any Error>

    private struct State {
        var refresh: CredentialRefresh<Credential>
        /// What the tasks wait for while a refresh is in progress.
        var prompt: SharedPrompt<Refreshed>?
    }

    private let authenticator: Authenticator
    private let origins: Set<RequestOrigin>
    private let window: RefreshWindow?
    /// How often the interceptor has a request sent again because its credential was refused. What
    /// other retriers have sent again does not count.
    public let maximumRetries: Int
    private let identity = InterceptorIdentity()
    private let state: Locked<State>

    /// Creates an interceptor.
    ///
    /// - Parameters:
    ///   - authenticator: Applies and refreshes credentials.
    ///   - credential: The first credential, or `nil` if it is to be obtained by a refresh.
    ///   - urls: URLs of the service. Only their origins (scheme, host and port) count.
    ///   - refreshWindow: How many refreshes are allowed within a time, or `nil` for any number.
    ///   - maximumRetries: See ``maximumRetries``.
    /// - Throws: ``ClientError`` with ``ClientError/Reason/invalidRequest`` if a URL is not an
    ///   absolute http or https URL.
    public init(
        _ authenticator: Authenticator, credential: Credential?, for urls: [String],
        refreshWindow: RefreshWindow? = RefreshWindow(), maximumRetries: Int = 1
    ) throws(ClientError) {
        self.authenticator = authenticator
        window = refreshWindow
        self.maximumRetries = maximumRetries
        var origins: Set<RequestOrigin> = []
        for url in urls {
            if let origin = try HTTPRequest(.get, url).origin { origins.insert(origin) }
        }
        self.origins = origins
        state = Locked(State(refresh: CredentialRefresh(credential, window: refreshWindow)))
    }

    /// The current credential. If it is set while it is being refreshed, the requests that wait for
    /// that go on with the new one at once, or fail if it is `nil`
    /// (``AuthenticationInterceptorError/missingCredential``). The refresh is not cancelled, but
    /// its result is not used.
    public var credential: Credential? {
        get { state.withLock { $0.refresh.credential } }
        set {
            let prompt = state.withLock { state in
                let prompt = state.refresh.isRefreshing ? state.prompt.take() : nil
                state.refresh.set(newValue)
                return prompt
            }
            let missing = AuthenticationInterceptorError.missingCredential
            prompt?.answered(newValue.map(Refreshed.success) ?? .failure(missing))
        }
    }

    private func applies(to request: HTTPRequest, _ attempt: RequestAttempt) -> Bool {
        guard !RefreshScope.interceptors.contains(identity), !attempt.isToOtherOrigin,
            let origin = request.origin
        else { return false }
        return origins.contains(origin)
    }

    public func adapt(
        _ request: HTTPRequest, for attempt: RequestAttempt
    ) async throws -> HTTPRequest {
        guard applies(to: request, attempt) else { return request }
        let (credential, revision) = state.withLock { state in
            (state.refresh.credential, state.refresh.revision)
        }
        var adapted = request
        let now = Clock.wallSeconds()
        if let credential, !credential.requiresRefresh(at: now) {
            authenticator.apply(credential, to: &adapted)
        } else {
            let usable = credential.flatMap { $0.isExpired(at: now) ? nil : $0 }
            let next = try await refreshed(insteadOf: revision, orUsing: usable)
            authenticator.apply(next, to: &adapted)
        }
        return adapted
    }

    public func retry(
        _ request: HTTPRequest, dueTo outcome: RequestOutcome, for attempt: RequestAttempt
    ) async -> RetryResult {
        guard let response = outcome.response, applies(to: request, attempt),
            attempt.retries(of: identity) < maximumRetries,
            authenticator.isAuthenticationFailure(response, of: request)
        else { return .doNotRetry }
        let (credential, revision) = state.withLock { state in
            (state.refresh.credential, state.refresh.revision)
        }
        if credential.map({ authenticator.isRequest(request, authenticatedWith: $0) }) ?? true {
            do { _ = try await refreshed(insteadOf: revision) } catch {
                return .doNotRetryWithError(error)
            }
        }
        attempt.countRetry(of: identity)
        return .retry
    }

    /// Returns the credential that follows the one of a revision.
    ///
    /// - Parameter usable: What is returned if there were too many refreshes, or `nil` for an
    ///   error.
    private func refreshed(
        insteadOf revision: UInt64, orUsing usable: Credential? = nil
    ) async throws -> Credential {
        let now = Clock.monotonicMilliseconds()
        let (step, prompt) = state.withLock { state in
            let step = state.refresh.step(insteadOf: revision, now: now)
            if case .begin = step { state.prompt = SharedPrompt() }
            return (step, state.prompt)
        }
        switch step {
        case .use(let credential): return credential
        case .refuse:
            if let usable { return usable }
            throw AuthenticationInterceptorError.excessiveRefresh(window ?? RefreshWindow())
        case .join: break
        case .begin(let credential, let number):
            prompt?.begin { [self] in
                let refreshed = await refresh(credential)
                prompt?.answered(finish(number, refreshed))
            }
        }
        guard let answer = await prompt?.answer() else { throw CancellationError() }
        return try answer.get()
    }

    private func refresh(_ credential: Credential?) async -> Refreshed {
        let scope = RefreshScope.interceptors.union([identity])
        return await RefreshScope.$interceptors.withValue(scope) {
            do { return .success(try await authenticator.refresh(credential)) } catch {
                return .failure(error)
            }
        }
    }

    private func finish(_ number: UInt64, _ refreshed: Refreshed) -> Refreshed {
        let credential = state.withLock { state in
            state.refresh.finish(number, try? refreshed.get())
        }
        if let credential { return .success(credential) }
        return refreshed.flatMap { _ in
            .failure(AuthenticationInterceptorError.missingCredential)
        }
    }
}

/// A bearer token (RFC 6750).
public struct BearerCredential: AuthenticationCredential, Hashable {
    /// The access token.
    public var token: String
    /// The token with which a new access token is requested, or `nil` if there is none.
    public var refreshToken: String?
    /// When the token expires, in seconds since 1970, or `nil` if that is not known. It is renewed
    /// ``margin`` seconds before.
    public var expiresAt: Int64?
    /// How long before its expiry a token is refreshed, in seconds: 60, unless more than half of
    /// its lifetime would be lost, counted from when the credential was created.
    public var margin: Int64 = 60

    /// Creates a credential; see the properties.
    public init(token: String, refreshToken: String? = nil, expiresAt: Int64? = nil) {
        (self.token, self.refreshToken, self.expiresAt) = (token, refreshToken, expiresAt)
        let now = Clock.wallSeconds()
        if let expiresAt, expiresAt > now { margin = min(margin, (expiresAt - now) / 2) }
    }

    public func requiresRefresh(at now: Int64) -> Bool {
        guard let expiresAt else { return false }
        let (margin, overflows) = expiresAt.subtractingReportingOverflow(margin)
        return !overflows && now >= margin
    }

    public func isExpired(at now: Int64) -> Bool { expiresAt.map { now >= $0 } ?? false }
}

/// Sends bearer tokens in the Authorization field.
public struct BearerAuthenticator: RequestAuthenticator {
    private let body: @Sendable (BearerCredential?) async throws -> BearerCredential

    /// Creates an authenticator.
    ///
    /// - Parameter refresh: See ``RequestAuthenticator/refresh(_:)``.
    public init(
        refresh: @escaping @Sendable (BearerCredential?) async throws -> BearerCredential
    ) { body = refresh }

    public func apply(_ credential: BearerCredential, to request: inout HTTPRequest) {
        request.headerFields[.authorization] = "Bearer \(credential.token)"
    }

    public func refresh(_ credential: BearerCredential?) async throws -> BearerCredential {
        try await body(credential)
    }
}
