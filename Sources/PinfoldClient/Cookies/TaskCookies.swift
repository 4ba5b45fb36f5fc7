import Cookies
import HTTPTypes
import Locking

/// The cookies of one task.
final class TaskCookies: Sendable {
    private let store: CookieStore
    /// Of the task's first request.
    private let site = Locked<String?>(nil)

    init(_ store: CookieStore) { self.store = store }

    /// A request as it is sent. A Cookie field of the caller's own is left as it is.
    func prepared(_ request: HTTPRequest) -> HTTPRequest {
        site.withLock { site in
            if site == nil { site = CookieRequest(request)?.site }
        }
        guard !request.headerFields.contains(.cookie), let field = store.field(for: request) else {
            return request
        }
        var prepared = request
        prepared.headerFields[.cookie] = field
        return prepared
    }

    /// A response to a request. One that the session's cache has answered sets nothing again.
    func received(_ response: HTTPResponse, for request: HTTPRequest, cache: CacheUse) {
        guard cache == .none || cache == .miss else { return }
        let site = site.withLock { $0 }
        store.take(response.headerFields[values: .setCookie], from: request, site: site)
    }
}
