import HTTPTypes

/// The cookies of a task.
struct TaskCookies: Sendable {
    private let store: CookieStore
    /// The task's first request.
    private let first: HTTPRequest

    init(_ store: CookieStore, first: HTTPRequest) {
        self.store = store
        self.first = first
    }

    /// Returns a request as it is sent. If the caller has set a Cookie field, it is left unchanged.
    func prepared(_ request: HTTPRequest) -> HTTPRequest {
        guard !request.headerFields.contains(.cookie), let field = store.field(for: request) else {
            return request
        }
        var prepared = request
        prepared.headerFields.append(HTTPField(name: .cookie, value: field))
        return prepared
    }

    /// Processes a response. A response from the session's cache does not set its cookies again.
    func received(_ response: HTTPResponse, for request: HTTPRequest, cache: CacheUse) {
        guard cache == .none || cache == .miss else { return }
        store.take(response.headerFields.bytes(of: .setCookie), from: request, ofTaskFor: first)
    }
}
