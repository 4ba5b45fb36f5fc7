import Logging
import PinfoldConfiguration

// What is logged when another configuration takes effect.
extension GatewayProcess {
    func log(_ warnings: [ConfigurationWarning]) {
        for warning in warnings { logger.warning("configuration: \(warning)") }
    }

    func warnOfWhatIsRemoved(_ next: ConfigurationSnapshot) {
        for removal in ConfigurationRemoval.all(from: configuration, to: next) {
            let names = configuration.variables.concealed(
                in: removal.names.joined(separator: ", "))
            logger.warning(
                "the reload removes configuration entries",
                metadata: ["\(removal.section)": "\(names)"])
        }
    }

    /// The keys whose changes take effect only after a restart.
    func sectionsThatNeedRestart(_ next: ConfigurationSnapshot) -> [String] {
        next.keysThatNeedRestart(
            after: begunWith, workers: workerCount, hasAccessLog: shared?.accessLog != nil)
    }

    func warnOfWhatNeedsRestart(_ next: ConfigurationSnapshot) {
        let keys = sectionsThatNeedRestart(next)
        guard !keys.isEmpty else { return }
        logger.warning(
            "some changes take effect only after a restart",
            metadata: ["keys": "\(keys.joined(separator: ", "))"])
    }
}
