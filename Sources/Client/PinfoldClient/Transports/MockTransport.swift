public import HTTPTypes
import Locking

/// A transport for tests, which answers requests from closures.
///
///     let mock = MockTransport()
///     mock.on(.get, "https://api.example.com/users/7") { _ in
///         TransportResponse(json: ["name": "Ada"])
///     }
///     var configuration = SessionConfiguration()
///     configuration.transport = mock
///
/// The closure that was added last for the method and the URL of a request answers it, so that a
/// test can replace what all tests have in common. Errors that closures throw, delays and streams
/// are those of ``TransportResponse`` and ``SessionTransport/response(to:)``.
public final class MockTransport: SessionTransport {
    /// Answers a request.
    public typealias Handler = @Sendable (TransportRequest) async throws -> TransportResponse

    private struct Route: Sendable {
        let method: HTTPRequest.Method?
        let url: String
        let handler: Handler
    }

    private struct State {
        var routes: [Route] = []
        var pins: [String: [String]] = [:]
        var requests: [HTTPRequest] = []
    }

    private let state = Locked(State())
    private let fallback: Handler

    /// The maximum number of ``requests`` that are kept. Of more, the latest ones are.
    public static let maximumRequests = 10_000

    /// Creates a transport.
    ///
    /// - Parameter fallback: Answers requests for which there is no other closure. By default, they
    ///   fail with ``ClientError/Reason/transportFailed``.
    public init(_ fallback: Handler? = nil) {
        self.fallback =
            fallback
            ?? { request in
                throw ClientError(
                    .transportFailed,
                    "the mock has no answer for \(request.head.method) \(request.head.url)",
                    of: request.head)
            }
    }

    /// Adds a closure.
    ///
    /// - Parameters:
    ///   - method: The method of the requests that it answers, or `nil` for any.
    ///   - url: Their URL. If it has no query, it stands for all queries.
    public func on(
        _ method: HTTPRequest.Method? = nil, _ url: String, handler: @escaping Handler
    ) {
        state.withLock { $0.routes.append(Route(method: method, url: url, handler: handler)) }
    }

    /// Sets the pins of the chain that a host presents; see
    /// ``SessionTransport/pins(presentedBy:port:)``.
    public func present(_ pins: [String]?, by host: String) {
        state.withLock { $0.pins[host] = pins }
    }

    /// The requests so far, in their order.
    public var requests: [HTTPRequest] { state.withLock { $0.requests } }

    public func response(to request: TransportRequest) async throws -> TransportResponse {
        let (head, url) = (request.head, request.head.url)
        let plain = String(url.prefix { $0 != "?" })
        let handler = state.withLock { state in
            if state.requests.count == Self.maximumRequests { state.requests.removeFirst() }
            state.requests.append(head)
            return state.routes.last { route in
                (route.method ?? head.method) == head.method
                    && (route.url == url || route.url == plain)
            }?.handler
        }
        return try await (handler ?? fallback)(request)
    }

    public func pins(presentedBy host: String, port: Int) -> [String]? {
        state.withLock { $0.pins[host] }
    }
}
