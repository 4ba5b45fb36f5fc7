public import HTTPTypes

/// Several interceptors as one. The adapters are called one after another, each with the request
/// that the previous one has returned. Of the retriers, the first one that does not return
/// ``RetryResult/doNotRetry`` decides.
///
///     configuration.interceptor = Interceptor(interceptors: [authentication, tracing])
public struct Interceptor: RequestInterceptor {
    private let adapters: [any RequestAdapter]
    private let retriers: [any RequestRetrier]

    /// Whether one of them does. The others are not called for other origins.
    public let interceptsOtherOrigins: Bool

    /// Creates an interceptor of adapters, retriers, and then interceptors.
    public init(
        adapters: [any RequestAdapter] = [], retriers: [any RequestRetrier] = [],
        interceptors: [any RequestInterceptor] = []
    ) {
        self.adapters = adapters + interceptors
        self.retriers = retriers + interceptors
        interceptsOtherOrigins =
            self.adapters.contains { $0.interceptsOtherOrigins }
            || self.retriers.contains { $0.interceptsOtherOrigins }
    }

    public func adapt(
        _ request: HTTPRequest, for attempt: RequestAttempt
    ) async throws -> HTTPRequest {
        var adapted = request
        for adapter in adapters
        where !attempt.isToOtherOrigin || adapter.interceptsOtherOrigins {
            adapted = try await adapter.adapt(adapted, for: attempt)
        }
        return adapted
    }

    public func retry(
        _ request: HTTPRequest, dueTo outcome: RequestOutcome, for attempt: RequestAttempt
    ) async -> RetryResult {
        for retrier in retriers
        where !attempt.isToOtherOrigin || retrier.interceptsOtherOrigins {
            let result = await retrier.retry(request, dueTo: outcome, for: attempt)
            if case .doNotRetry = result { continue }
            return result
        }
        return .doNotRetry
    }
}

/// An adapter that is a closure.
///
///     configuration.interceptor = Adapter { request, _ in
///         var request = request
///         request.headerFields[.accept] = "application/json"
///         return request
///     }
public struct Adapter: RequestInterceptor {
    private let body: @Sendable (HTTPRequest, RequestAttempt) async throws -> HTTPRequest

    /// Creates an adapter; see ``RequestAdapter/adapt(_:for:)``.
    public init(
        _ adapt: @escaping @Sendable (HTTPRequest, RequestAttempt) async throws -> HTTPRequest
    ) { body = adapt }

    public func adapt(
        _ request: HTTPRequest, for attempt: RequestAttempt
    ) async throws -> HTTPRequest { try await body(request, attempt) }
}

/// A retrier that is a closure.
public struct Retrier: RequestInterceptor {
    private let body: @Sendable (HTTPRequest, RequestOutcome, RequestAttempt) async -> RetryResult

    /// Creates a retrier; see ``RequestRetrier/retry(_:dueTo:for:)``.
    public init(
        _ retry:
            @escaping @Sendable (
                HTTPRequest, RequestOutcome, RequestAttempt
            ) async -> RetryResult
    ) { body = retry }

    public func retry(
        _ request: HTTPRequest, dueTo outcome: RequestOutcome, for attempt: RequestAttempt
    ) async -> RetryResult { await body(request, outcome, attempt) }
}
