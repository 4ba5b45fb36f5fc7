import Logging
import PinfoldConfiguration

// What is logged when another configuration takes effect.
extension GatewayProcess {
    func log(_ warnings: [ConfigurationWarning]) {
        for warning in warnings { logger.warning("configuration: \(warning)") }
    }

    func warnOfWhatIsRemoved(_ next: ConfigurationSnapshot) {
        for removal in ConfigurationRemoval.all(from: configuration, to: next) {
            logger.warning(
                "the reload removes configuration entries",
                metadata: ["\(removal.section)": "\(removal.names.joined(separator: ", "))"])
        }
    }

    func warnOfWhatNeedsRestart(_ next: ConfigurationSnapshot) {
        var keys: [String] = []
        if next.workers.count != workerCount { keys.append("workers") }
        if !next.cache.hasSameStore(as: configuration.cache) { keys.append("cache") }
        if next.resolver != configuration.resolver { keys.append("resolver") }
        if next.activity != configuration.activity { keys.append("activity") }
        if (next.log.access == nil) != (shared?.accessLog == nil) { keys.append("log.access") }
        guard !keys.isEmpty else { return }
        logger.warning(
            "some changes take effect only after a restart",
            metadata: ["keys": "\(keys.joined(separator: ", "))"])
    }
}
