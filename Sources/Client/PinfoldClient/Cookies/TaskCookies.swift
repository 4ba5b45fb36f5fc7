import Cookies
import HTTPTypes

/// The cookies of one task.
struct TaskCookies: Sendable {
    private let store: CookieStore
    /// The task's first request.
    private let first: HTTPRequest

    init(_ store: CookieStore, first: HTTPRequest) {
        self.store = store
        self.first = first
    }

    /// A request as it is sent. A Cookie field of the caller's own is left as it is.
    func prepared(_ request: HTTPRequest) -> HTTPRequest {
        guard !request.headerFields.contains(.cookie), let field = store.field(for: request) else {
            return request
        }
        var prepared = request
        prepared.headerFields.append(HTTPField(name: .cookie, value: field))
        return prepared
    }

    /// A response to a request. One that the session's cache has answered sets nothing again.
    func received(_ response: HTTPResponse, for request: HTTPRequest, cache: CacheUse) {
        guard cache == .none || cache == .miss else { return }
        store.take(response.headerFields.bytes(of: .setCookie), from: request, ofTaskFor: first)
    }
}
