import Logging
import SharedCacheLevel

extension Logger {
    /// Logs an event of the level of the cache that is shared with other gateways.
    /// - Parameter place: where the engine is.
    func log(_ event: SharedLevelEvent, of place: String) {
        switch event {
        case .ready(let product, let version):
            notice(
                "the shared cache is in use",
                metadata: [
                    "engine": "\(place)", "product": "\(product)", "version": "\(version)",
                ])
        case .off(let reason, let detail):
            warning(
                "the shared cache is not in use; requests are served without it",
                metadata: [
                    "engine": "\(place)", "reason": "\(reason.rawValue)", "detail": "\(detail)",
                ])
        case .madeStale(let why):
            warning(
                "a purge may have been missed: all that is stored is confirmed before it is used",
                metadata: ["engine": "\(place)", "reason": "\(why)"])
        case .nodeReady(let node):
            notice("a node of the shared cache is in use", metadata: ["node": "\(node)"])
        case .nodeOff(let node, let reason, let detail):
            warning(
                "a node of the shared cache is not in use; what it has is not found",
                metadata: [
                    "node": "\(node)", "reason": "\(reason.rawValue)", "detail": "\(detail)",
                ])
        }
    }
}
