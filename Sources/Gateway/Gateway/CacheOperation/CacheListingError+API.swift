import CacheStore

extension CacheListingError {
    /// The error as the API reports it.
    var problem: AdminError {
        let retry = [AdminResponse.Field("Retry-After", "1")]
        return switch self {
        case .busy: AdminError(503, "busy", "Too many readers", "\(self)", fields: retry)
        case .diskOpening:
            AdminError(503, "cache-disk-opening", "Cache not open yet", "\(self)", fields: retry)
        case .diskOff: AdminError(503, "cache-disk-off", "Cache on disk off", "\(self)")
        case .handedOver:
            AdminError(
                503, "draining", "Shutting down",
                "another process has the cache: a new connection reaches it", fields: retry)
        case .readFailed: AdminError(500, "cache-read-failed", "Cache not read", "\(self)")
        case .outdated: AdminError(409, "cache-list-outdated", "List outdated", "\(self)")
        case .closed: AdminError(503, "draining", "Shutting down", "\(self)")
        }
    }
}

extension AdminResource.Response {
    /// For those who ask what is stored, and cannot be told all of it.
    static var ofUnreadableCache: [AdminResource.Response] {
        [
            AdminResource.Response(
                status: 500, description: "What is on disk could not be read (cache-read-failed).",
                schema: AdminError.shape.schema),
            AdminResource.Response(
                status: 503,
                description: "The cache on disk is not open yet (cache-disk-opening), off because "
                    + "of a fault (cache-disk-off), or passing to another process (draining); or "
                    + "too much is being asked (busy).",
                schema: AdminError.shape.schema),
        ]
    }
}
